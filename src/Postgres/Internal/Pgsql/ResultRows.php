<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Rows;
use Spindle\Postgres\Internal\Types\Types;

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

    public function first(Columns $columns, array $keys): array
    {
        return self::values($this->texts(0), $columns, $keys);
    }

    public function batches(Columns $columns, array $keys): iterable
    {
        for ($row = 0; $row < $this->count;) {
            $batch = [];
            for ($end = min($this->count, $row + self::BATCH); $row < $end; ++$row) {
                $batch[] = self::values($this->texts($row), $columns, $keys);
            }
            yield $batch;
        }
    }

    /** Bytes of a row, about. */
    public function averageSize(): float
    {
        $sample = min(self::SAMPLE, $this->count);
        $bytes = 0;
        for ($row = 0; $row < $sample; ++$row) {
            $bytes += \strlen(implode('', $this->texts($row)));
        }

        return 1 + $bytes / max(1, $sample);
    }

    /** @return list<string|null> */
    private function texts(int $row): array
    {
        /** @var list<string|null> $texts */
        $texts = pg_fetch_row($this->result, $row);

        return $texts;
    }

    /**
     * @template K of array-key
     *
     * @param list<string|null> $texts
     * @param list<K>           $keys
     *
     * @return array<K, mixed>
     */
    private static function values(array $texts, Columns $columns, array $keys): array
    {
        $values = [];
        foreach ($keys as $index => $key) {
            $text = $texts[$index];
            $values[$key] = $text === null ? null : match ($columns->kinds[$index]) {
                Types::TEXT => $text,
                Types::INT => (int) $text,
                default => $columns->types->decode($columns->oids[$index], $text),
            };
        }

        return $values;
    }
}
