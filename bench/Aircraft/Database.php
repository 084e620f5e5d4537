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

/** The database that all contestants use: a temporary cluster whose commits reach the disk, as PostgreSQL has it by default. */
final readonly class Database
{
    /** Aircraft that are there before and after each measurement. */
    public const SEEDED = 10_000;

    private const SETTINGS = ['fsync' => true, 'full_page_writes' => true];

    private PostgresConnection $connection;

    /** Connections that are not the contestants'. */
    private int $others;

    private function __construct(private Server $server)
    {
        $this->connection = PostgresConnection::connect($server->target->dsn());
        (new Migrations($this->connection))->run();
        $this->others = $this->backends();
    }

    /** @param int $connections that contestants have at most */
    public static function start(int $connections): self
    {
        return new self(Server::start($connections, false, self::SETTINGS));
    }

    /** @return array<string, string> */
    public function describe(): array
    {
        return $this->server->describe();
    }

    /** @return list<int> the server's processes */
    public function processes(): array
    {
        $postmaster = $this->target()->postmaster;

        return $postmaster === null ? [] : (new ProcessTree($postmaster))->pids();
    }

    public function target(): Target
    {
        return $this->server->target;
    }

    /** The way to it past whatever delays. */
    public function endpoint(): Endpoint
    {
        return new Endpoint($this->target()->parameters);
    }

    /** Brings the table into the state that each measurement begins with. */
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

    /** @return bool whether the table has what restore() put there, nothing else, and nothing of it was changed */
    public function isRestored(): bool
    {
        return $this->int("SELECT count(*) FROM aircraft WHERE number ~ '^S-' AND serial_number = 'MSN ' || (10000 + substr(number, 3)::int)") === self::SEEDED && $this->count() === self::SEEDED;
    }

    /** @return int connections of contestants now */
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
