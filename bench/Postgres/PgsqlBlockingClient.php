<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use PgSql\Connection;
use PgSql\Result;

/** ext-pgsql in its most common use: blocking prepared statements on one connection. */
final class PgsqlBlockingClient implements Client
{
    private readonly Connection $connection;

    /** @var array<string, string> names of prepared statements, by SQL */
    private array $names = [];

    public function __construct(Target $target)
    {
        $this->connection = Pgsql::connect($target);
    }

    public function run(Load $load, int $count): int
    {
        $right = 0;
        for ($i = 0; $i < $count; ++$i) {
            $right += (int) ($load->isTransaction ? $this->isTransactionRight(
                $load,
                Tables::anyItem(),
            ) : $this->isRight($load, Tables::anyItem()));
        }

        return $right;
    }

    public function close(): void
    {
        pg_close($this->connection);
    }

    private function isTransactionRight(Load $load, int $id): bool
    {
        pg_query($this->connection, 'BEGIN');
        $right = $this->isRight($load, $id);

        return pg_query($this->connection, 'COMMIT') !== false && $right;
    }

    private function isRight(Load $load, int $id): bool
    {
        $right = true;
        foreach ($load->steps as $step) {
            $result = pg_execute($this->connection, $this->names[$step->sql] ?? $this->prepare($step->sql), [$id]);
            \assert($result instanceof Result);
            $right = $step->isRight(
                $id,
                $step->reads ? pg_fetch_result($result, 0, 0) : null,
                pg_affected_rows($result),
            )
                && $right;
        }

        return $right;
    }

    private function prepare(string $sql): string
    {
        $name = 's' . \count($this->names);
        pg_prepare($this->connection, $name, $sql);

        return $this->names[$sql] = $name;
    }
}
