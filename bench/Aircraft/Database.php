<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Aircraft\Fleet;
use Aircraft\Migrations;
use Aircraft\Transfer;
use Spindle\Bench\Http\ProcessTree;
use Spindle\Bench\Postgres\Server;
use Spindle\Bench\Postgres\Target;
use Spindle\Postgres\PostgresConnection;

/**
 * The database of all contestants: a temporary cluster that syncs its commits to disk, as PostgreSQL does by default.
 */
final readonly class Database
{
    /** Number of aircraft before and after each measurement. */
    public const SEEDED = 10_000;

    private const SETTINGS = ['fsync' => true, 'full_page_writes' => true];

    private PostgresConnection $connection;

    /** Number of connections that are not the contestants'. */
    private int $others;

    private function __construct(private Server $server)
    {
        $this->connection = PostgresConnection::connect($server->target->dsn());
        (new Migrations($this->connection))->run();
        $this->others = $this->backends();
    }

    /** @param int $connections largest number of the contestants' connections */
    public static function start(int $connections): self
    {
        return new self(Server::start($connections, false, self::SETTINGS));
    }

    /** @return array<string, string> */
    public function describe(): array
    {
        return $this->server->describe();
    }

    /** @return list<int> ids of the server's processes */
    public function processes(): array
    {
        $postmaster = $this->target()->postmaster;

        return $postmaster === null ? [] : (new ProcessTree($postmaster))->pids();
    }

    public function target(): Target
    {
        return $this->server->target;
    }

    /** Returns the direct endpoint, without a delay. */
    public function endpoint(): Endpoint
    {
        return new Endpoint($this->target()->parameters);
    }

    /** Restores the table to the initial state of each measurement. */
    public function restore(int $rows = self::SEEDED): void
    {
        $this->connection->executeScript('TRUNCATE aircraft');
        if ($rows > 0) {
            (new Transfer($this->connection))->import(Fleet::csv($rows));
        }
        $this->connection->executeScript('VACUUM ANALYZE aircraft');
        $this->connection->executeScript('CHECKPOINT');
    }

    public function count(): int
    {
        return $this->int('SELECT count(*) FROM aircraft');
    }

    /** @return bool whether the table has exactly the rows of restore(), unchanged */
    public function isRestored(): bool
    {
        return $this->int(
            "SELECT count(*) FROM aircraft WHERE number ~ '^S-'"
            . " AND serial_number = 'MSN ' || (10000 + substr(number, 3)::int)",
        ) === self::SEEDED
            && $this->count() === self::SEEDED;
    }

    /** @return int current number of the contestants' connections */
    public function connections(): int
    {
        return $this->backends() - $this->others;
    }

    public function stop(): void
    {
        $this->connection->close();
        $this->server->stop();
    }

    private function backends(): int
    {
        return $this->int("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'");
    }

    private function int(string $sql): int
    {
        $value = $this->connection->query($sql)->value();
        \assert(\is_int($value));

        return $value;
    }
}
