<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Protocol\EncodedRows;
use Spindle\Postgres\Internal\RowObjects;

/**
 * The rows of a statement, and the number of rows that the statement wrote or returned. Values are decoded in batches
 * of rows. A value that can't be read causes a {@see ProtocolException} before any row of its batch is returned.
 *
 * | PostgreSQL | PHP |
 * |---|---|
 * | bool; int2, int4, int8, oid; float4, float8 | bool; int; float |
 * | numeric | string with all digits |
 * | bytea | string of bytes |
 * | json, jsonb | value as from json_decode(), with objects as arrays; see {@see JsonMode} |
 * | date, timestamp | DateTimeImmutable in UTC, with microseconds; INF, -INF for infinity |
 * | timestamptz | DateTimeImmutable with the offset of the session's time zone; INF, -INF for infinity |
 * | interval | DateInterval; INF, -INF for infinity |
 * | arrays; ranges; multiranges | lists; {@see Range}; lists of {@see Range} |
 * | text, uuid, enums and all others | string |
 *
 * @implements \IteratorAggregate<int, array<string, mixed>>
 */
final class Result implements \IteratorAggregate, \Countable
{
    /**
     * @internal
     *
     * @param int $affectedRows number of rows that the statement wrote or returned
     */
    public function __construct(
        private readonly ?Columns $columns,
        private readonly ?EncodedRows $rows,
        public readonly int $affectedRows,
    ) {}

    /** @return list<string> names of the columns */
    public function columnNames(): array
    {
        return $this->columns->names ?? [];
    }

    /** Returns the number of rows in the result: 0 for a statement that only writes. */
    public function count(): int
    {
        return $this->rows->count ?? 0;
    }

    /**
     * Yields the rows, each with the names of the columns as keys.
     *
     * @return \Generator<int, array<string, mixed>>
     *
     * @throws UnexpectedResultException when two columns have the same name
     */
    public function getIterator(): \Generator
    {
        $index = 0;
        foreach ($this->batches() as $batch) {
            foreach ($batch as $row) {
                yield $index++ => $row;
            }
        }
    }

    /**
     * Returns all rows, each with the names of the columns as keys.
     *
     * @return list<array<string, mixed>>
     *
     * @throws UnexpectedResultException when two columns have the same name
     */
    public function all(): array
    {
        return array_merge(...$this->batches());
    }

    /**
     * Returns all rows as lists, in the order of the columns.
     *
     * @return list<list<mixed>>
     */
    public function allNumeric(): array
    {
        /** @var list<list<mixed>> $rows each row is a list, because its keys are the columns' positions */
        $rows = $this->columns === null || $this->rows === null
            ? []
            : array_merge(...$this->rows->batches($this->columns, array_keys($this->columns->names)));

        return $rows;
    }

    /**
     * Returns all rows as lists of scalars, for callers that convert values themselves. Values of bool, integers,
     * floats and bytea are as in {@see allNumeric()}. All other values are strings in PostgreSQL's own format.
     *
     * @return list<list<bool|float|int|string|null>>
     */
    public function scalars(): array
    {
        /** @var list<list<bool|float|int|string|null>> $rows */
        $rows = $this->columns === null || $this->rows === null
            ? []
            : array_merge(...$this->rows->batches($this->columns->scalars(), array_keys($this->columns->names)));

        return $rows;
    }

    /**
     * Returns the only row, with the names of the columns as keys; null when the result has no row.
     *
     * @return array<string, mixed>|null
     *
     * @throws UnexpectedResultException when there are several rows, or two columns have the same name
     */
    public function one(): ?array
    {
        if (($this->rows->count ?? 0) > 1) {
            throw UnexpectedResultException::rows($this->count());
        }
        if ($this->columns === null || $this->rows === null) {
            return null;
        }
        if ($this->columns->duplicateName !== null) {
            throw UnexpectedResultException::duplicateColumn($this->columns->duplicateName);
        }

        return $this->rows->first($this->columns, $this->columns->names);
    }

    /**
     * Returns the first value of the only row; null when the result has no row.
     *
     * @throws UnexpectedResultException when there are several rows, or no columns
     */
    public function value(): mixed
    {
        if (($this->rows->count ?? 0) > 1) {
            throw UnexpectedResultException::rows($this->count());
        }

        if ($this->columns === null || $this->columns->names === []) {
            throw UnexpectedResultException::noColumns();
        }

        return $this->rows?->first($this->columns, [0])[0];
    }

    /**
     * Returns the first value of each row.
     *
     * @return list<mixed>
     *
     * @throws UnexpectedResultException when there are no columns
     */
    public function column(): array
    {
        if (($this->columns->names ?? []) === []) {
            throw UnexpectedResultException::noColumns();
        }

        return array_column($this->allNumeric(), 0);
    }

    /**
     * Returns the values of the second column, with the values of the first column as keys.
     *
     * @return array<array-key, mixed>
     *
     * @throws UnexpectedResultException when there are not exactly two columns, or a value of the first column occurs
     *     twice or is neither an integer nor a string
     */
    public function pairs(): array
    {
        if (\count($this->columnNames()) !== 2) {
            throw UnexpectedResultException::pairs(\count($this->columnNames()));
        }
        $pairs = [];
        foreach ($this->allNumeric() as [$key, $value]) {
            $pairs[self::key($this->columnNames()[0], $key, $pairs)] = $value;
        }

        return $pairs;
    }

    /**
     * Returns all rows, with the values of a column as keys.
     *
     * @return array<array-key, array<string, mixed>>
     *
     * @throws UnexpectedResultException when there is no such column, two columns have the same name, or a value of the
     *     column occurs twice or is neither an integer nor a string
     */
    public function indexedBy(string $column): array
    {
        if (!\in_array($column, $this->columnNames(), true)) {
            throw UnexpectedResultException::noColumn($column);
        }
        $rows = [];
        foreach ($this->all() as $row) {
            $rows[self::key($column, $row[$column], $rows)] = $row;
        }

        return $rows;
    }

    /** @param array<array-key, mixed> $usedKeys array with the keys of earlier rows */
    private static function key(string $column, #[\SensitiveParameter] mixed $value, array $usedKeys): int|string
    {
        if (!\is_int($value) && !\is_string($value)) {
            throw UnexpectedResultException::key($column, get_debug_type($value));
        }

        return \array_key_exists($value, $usedKeys) ? throw UnexpectedResultException::duplicateKey($column) : $value;
    }

    /**
     * Creates an object for each row through the constructor of a class.
     *
     * A column is passed to the constructor's parameter of the same name, or else to the parameter with this name in
     * camelCase. If the parameter's type is a backed enum, the parameter gets the case with the column's value.
     *
     * @template T of object
     *
     * @param class-string<T> $class
     *
     * @return list<T>
     *
     * @throws UnexpectedResultException when a column has no parameter, a required parameter has no column, or a value
     *     has a wrong type
     */
    public function mapTo(string $class): array
    {
        return RowObjects::for($class, $this->columnNames())->of($this->allNumeric());
    }

    /** @return iterable<list<array<string, mixed>>> */
    private function batches(): iterable
    {
        if ($this->columns?->duplicateName !== null) {
            throw UnexpectedResultException::duplicateColumn($this->columns->duplicateName);
        }

        return $this->columns === null || $this->rows === null
            ? []
            : $this->rows->batches($this->columns, $this->columns->names);
    }
}
