<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\SQL\Parser;
use Doctrine\DBAL\SQL\Parser\Visitor;

/** Replaces the parameters "?" and ":name" of a statement by PostgreSQL's $1, $2 and so on. */
final class NumberedParameters implements Visitor
{
    public string $sql = '';

    /** @var array<array-key, non-empty-list<int>> N of each $N for a parameter, by :name or by position (from 1) */
    public array $numbers = [];

    public int $count = 0;

    private int $positions = 0;

    public static function of(string $sql): self
    {
        $parameters = new self();
        (new Parser(false))->parse($sql, $parameters);

        return $parameters;
    }

    public function acceptPositionalParameter(string $sql): void
    {
        $this->accept(++$this->positions);
    }

    /** Gives each occurrence of a name its own number, because PostgreSQL may infer a different type for each. */
    public function acceptNamedParameter(string $sql): void
    {
        $this->accept($sql);
    }

    public function acceptOther(string $sql): void
    {
        $this->sql .= $sql;
    }

    private function accept(int|string $parameter): void
    {
        $this->numbers[$parameter][] = ++$this->count;
        $this->sql .= "\${$this->count}";
    }
}
