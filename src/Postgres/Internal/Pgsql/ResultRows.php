<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Rows;
use Spindle\Postgres\Internal\TextRows;

/** Rows that stay with libpq, in memory that PHP does not count, until they are asked for. */
final readonly class ResultRows implements Rows
{
    private const BATCH = 256;

    /** Rows whose size stands for that of all. */
    private const SAMPLE = 20;

    /** @var int<0, max> */
    public int $count;

    public function __construct(private Result $result)
    {
        $this->count = max(0, pg_num_rows($result));
    }

    public function first(Columns $columns, int $count): array
    {
        return (new TextRows([$this->row(0)]))->first($columns, $count);
    }

    public function batches(Columns $columns): iterable
    {
        for ($at = 0; $at < $this->count; $at += self::BATCH) {
            $rows = [];
            for ($row = $at, $end = min($this->count, $at + self::BATCH); $row < $end; ++$row) {
                $rows[] = $this->row($row);
            }
            yield from (new TextRows($rows))->batches($columns);
        }
    }

    /** Bytes of a row, about. */
    public function averageSize(): float
    {
        $sample = min(self::SAMPLE, $this->count);
        $bytes = 0;
        for ($row = 0; $row < $sample; ++$row) {
            $bytes += \strlen(implode('', $this->row($row)));
        }

        return 1 + $bytes / max(1, $sample);
    }

    /** @return list<string|null> */
    private function row(int $number): array
    {
        /** @var list<string|null> $row */
        $row = pg_fetch_row($this->result, $number);

        return $row;
    }
}
