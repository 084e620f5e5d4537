<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PgSql\Connection;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;

/** Blocks statements on the server until the gate opens. */
final class Gate
{
    private ?Connection $keeper;

    private readonly int $key;

    public function __construct()
    {
        $keeper = pg_connect(Cluster::shared()->dsn(), \PGSQL_CONNECT_FORCE_NEW);
        $this->keeper = $keeper !== false ? $keeper : throw new \RuntimeException('The cluster does not answer');
        $this->key = random_int(1, 0x7FFF_FFFF);
        $this->ask("SELECT pg_advisory_lock({$this->key})");
    }

    public function __destruct()
    {
        $this->open();
    }

    /** Returns a statement that waits at the gate, and then returns one value. */
    public function statement(string $expression = "'passed'"): string
    {
        return "SELECT {$expression} FROM {$this->call()}";
    }

    /** Returns the function call that waits. */
    public function call(): string
    {
        return "pg_advisory_xact_lock_shared({$this->key})";
    }

    /** Runs the event loop until $number statements wait at the gate. */
    public function awaitStatements(int $number): void
    {
        Eventually::holds(fn(): bool => $this->waiting() === $number, "{$number} statements wait on the server");
    }

    public function waiting(): int
    {
        return (int) $this->ask(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {$this->key} AND classid = 0 "
                . 'AND NOT granted',
        );
    }

    public function open(): void
    {
        if ($this->keeper !== null) {
            pg_close($this->keeper);
            $this->keeper = null;
        }
    }

    private function ask(string $sql): string
    {
        $result = $this->keeper === null ? false : pg_query($this->keeper, $sql);

        return $result === false
            ? throw new \LogicException('The gate is open')
            : (string) pg_fetch_result($result, 0, 0);
    }
}
