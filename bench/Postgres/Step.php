<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A statement about the row that $1 names. */
final readonly class Step
{
    /** @param bool $reads whether it gives the row's name first; else it writes one row */
    private function __construct(public string $sql, public bool $reads) {}

    public static function query(string $sql): self
    {
        return new self($sql, true);
    }

    public static function write(string $sql): self
    {
        return new self($sql, false);
    }

    /**
     * @param mixed $value    the first of the row, where it reads
     * @param int   $affected rows, where it writes
     */
    public function isRight(int $id, mixed $value, int $affected): bool
    {
        return $this->reads ? $value === "name {$id}" : $affected === 1;
    }
}
