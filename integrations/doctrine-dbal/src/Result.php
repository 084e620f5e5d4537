<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\FetchUtils;
use Doctrine\DBAL\Driver\Result as DriverResult;
use Doctrine\DBAL\Exception\InvalidColumnIndex;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\Result as PostgresResult;

/** The rows of a statement. All rows are in memory. */
final class Result implements DriverResult
{
    /** @var list<list<bool|float|int|string|null>>|null decoded rows; null before the first call that needs them */
    private ?array $rows = null;

    private int $position = 0;

    /** @param PostgresResult|null $result null for several statements, for COMMIT, and after {@see free()} */
    public function __construct(private ?PostgresResult $result) {}

    public function fetchNumeric(): array|false
    {
        return $this->rows()[$this->position++] ?? false;
    }

    public function fetchAssociative(): array|false
    {
        $row = $this->fetchNumeric();

        return $row === false ? false : array_combine($this->names(), $row);
    }

    public function fetchOne(): mixed
    {
        return FetchUtils::fetchOne($this);
    }

    public function fetchAllNumeric(): array
    {
        $rows = \array_slice($this->rows(), $this->position);
        $this->position += \count($rows);

        return $rows;
    }

    public function fetchAllAssociative(): array
    {
        $names = $this->names();

        return array_map(static fn(array $row): array => array_combine($names, $row), $this->fetchAllNumeric());
    }

    public function fetchFirstColumn(): array
    {
        return array_column($this->fetchAllNumeric(), 0);
    }

    public function rowCount(): int
    {
        return $this->result->affectedRows ?? 0;
    }

    public function columnCount(): int
    {
        return \count($this->names());
    }

    /** @throws InvalidColumnIndex */
    public function getColumnName(int $index): string
    {
        return $this->names()[$index] ?? throw InvalidColumnIndex::new($index);
    }

    public function free(): void
    {
        [$this->result, $this->rows] = [null, []];
    }

    /** @return list<string> */
    private function names(): array
    {
        return $this->result?->columnNames() ?? [];
    }

    /**
     * @return list<list<bool|float|int|string|null>>
     *
     * @throws Exception for COMMIT, for a string with several statements, or when the rows do not fit into memory
     */
    private function rows(): array
    {
        try {
            return $this->rows ??= $this->result?->scalars() ?? throw Exception::rowsOfScript();
        } catch (PostgresException $failure) {
            throw Exception::of($failure);
        }
    }
}
