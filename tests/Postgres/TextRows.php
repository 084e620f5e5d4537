<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Rows;
use Spindle\Postgres\Internal\Types\Types;

/** Rows whose values are in PostgreSQL's text format. */
final readonly class TextRows implements Rows
{
    private const BATCH = 256;

    /** @param list<list<string|null>> $rows */
    public function __construct(private array $rows) {}

    public function first(Columns $columns, array $keys): array
    {
        return self::values($this->rows[0], $columns, $keys);
    }

    public function batches(Columns $columns, array $keys): iterable
    {
        for ($at = 0; $at < \count($this->rows); $at += self::BATCH) {
            $batch = [];
            foreach (\array_slice($this->rows, $at, self::BATCH) as $row) {
                $batch[] = self::values($row, $columns, $keys);
            }
            yield $batch;
        }
    }

    /**
     * @template K of array-key
     *
     * @param list<string|null> $row
     * @param list<K>           $keys
     *
     * @return array<K, mixed>
     */
    private static function values(array $row, Columns $columns, array $keys): array
    {
        $values = [];
        foreach ($keys as $index => $key) {
            $text = $row[$index];
            $values[$key] = $text === null ? null : match ($columns->kinds[$index]) {
                Types::TEXT => $text,
                Types::INT => (int) $text,
                default => $columns->types->decode($columns->oids[$index], $text),
            };
        }

        return $values;
    }
}
