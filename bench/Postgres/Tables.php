<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Postgres\PostgresConnection;

/**
 * The tables that are read and written, in a temporary schema. An id determines its row: the name is "name " and the
 * id, the score is a seventh of it.
 */
final class Tables
{
    /** Rows of the table for single reads. */
    public const ITEMS = 100_000;

    /** Rows of the table that is read as a whole. */
    public const READ_ROWS = 5_000;

    private const ROW_COLUMNS = "id, 'name ' || id AS name, id / 7.0::float8 AS score";

    /** @var array<string, true> existing tables by name */
    private array $made = [];

    public readonly string $schema;

    public function __construct(private readonly PostgresConnection $connection)
    {
        $this->schema = 'spindle_bench_' . bin2hex(random_bytes(4));
        $connection->execute("CREATE SCHEMA {$this->schema}");
    }

    public static function anyItem(): int
    {
        return mt_rand(1, self::ITEMS);
    }

    /** @return array{int, string, float} */
    public static function row(int $id): array
    {
        return [$id, "name {$id}", $id / 7.0];
    }

    /** Prepares the tables of a measurement. */
    public function prepare(Measurement $what, int $count): void
    {
        match ($what) {
            Measurement::Select, Measurement::Cells, Measurement::Far, Measurement::Unit, Measurement::Sleep
                => $this->make('items', self::ITEMS, 'ADD PRIMARY KEY (id)'),
            Measurement::Update => $this->makeCounters(),
            Measurement::Rows => $this->make('few', self::READ_ROWS),
            Measurement::Stream => $this->make('many', $count),
            Measurement::Copy => $this->makeCopy($count),
            default => null,
        };
    }

    public function drop(): void
    {
        $this->connection->execute("DROP SCHEMA {$this->schema} CASCADE");
    }

    private function make(string $name, int $rows, string $alteration = ''): void
    {
        if (isset($this->made[$name])) {
            return;
        }
        $this->connection->execute(
            "CREATE TABLE {$this->schema}.{$name} AS SELECT " . self::ROW_COLUMNS
                . " FROM generate_series(1, {$rows}) id",
        );
        if ($alteration !== '') {
            $this->connection->execute("ALTER TABLE {$this->schema}.{$name} {$alteration}");
        }
        $this->connection->execute("VACUUM ANALYZE {$this->schema}.{$name}");
        $this->made[$name] = true;
    }

    /** Creates the tables again, because each update leaves a dead row behind. */
    private function makeCounters(): void
    {
        $this->connection->executeScript(
            "DROP TABLE IF EXISTS {$this->schema}.counters, {$this->schema}.log;"
            . " CREATE TABLE {$this->schema}.log (id int4 NOT NULL)",
        );
        unset($this->made['counters']);
        $this->make('counters', self::ITEMS, 'ADD PRIMARY KEY (id), ADD counter int4 NOT NULL DEFAULT 0');
    }

    private function makeCopy(int $count): void
    {
        $this->make('many', $count);
        $this->make('copied', 0);
        $this->connection->execute("TRUNCATE {$this->schema}.copied");
    }
}
