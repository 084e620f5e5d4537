<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A statement about the row with the id $1. */
final readonly class Step
{
    /** @param bool $reads whether the first value is the row's name; otherwise the statement writes one row */
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
     * @param mixed $value    first value of the row, for a read
     * @param int   $affected number of rows, for a write
     */
    public function isRight(int $id, mixed $value, int $affected): bool
    {
        return $this->reads ? $value === "name {$id}" : $affected === 1;
    }
}
