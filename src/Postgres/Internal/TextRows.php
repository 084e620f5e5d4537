<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\Internal\Types\Types;

/** Rows whose values are PostgreSQL's text. */
final readonly class TextRows implements Rows
{
    private const BATCH = 256;

    /** @param list<list<string|null>> $rows */
    public function __construct(private array $rows) {}

    public function first(Columns $columns, int $count): array
    {
        return self::values(\array_slice($this->rows[0], 0, $count), $columns);
    }

    public function batches(Columns $columns): iterable
    {
        for ($at = 0; $at < \count($this->rows); $at += self::BATCH) {
            yield array_map(
                static fn(array $row): array => self::values($row, $columns),
                \array_slice($this->rows, $at, self::BATCH),
            );
        }
    }

    /**
     * @param list<string|null> $row
     *
     * @return list<mixed>
     */
    private static function values(array $row, Columns $columns): array
    {
        $values = [];
        foreach ($row as $index => $text) {
            $values[] = $text === null ? null : match ($columns->kinds[$index]) {
                Types::TEXT => $text,
                Types::INT => (int) $text,
                default => $columns->types->decode($columns->oids[$index], $text),
            };
        }

        return $values;
    }
}
