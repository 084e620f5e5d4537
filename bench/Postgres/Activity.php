<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Postgres\PostgresConnection;

/** Activity of the server's processes in pg_stat_activity, read over a separate connection. */
final readonly class Activity
{
    private PostgresConnection $connection;

    public function __construct(Target $target)
    {
        $this->connection = PostgresConnection::connect($target->dsn());
    }

    /**
     * Polls until a condition is met, as fast as the server answers.
     *
     * @param \Closure(self): bool $is
     * @param float                $limit time limit in seconds
     *
     * @throws \RuntimeException when the time is over
     */
    public function until(\Closure $is, float $limit): void
    {
        $deadline = hrtime(true) / 1e9 + $limit;
        while (!$is($this)) {
            if (hrtime(true) / 1e9 > $deadline) {
                throw new \RuntimeException("pg_stat_activity did not reach the expected state within {$limit} s");
            }
        }
    }

    /** @return string|null null when the process does not exist */
    public function state(int $backend): ?string
    {
        $state = $this->connection->query('SELECT state FROM pg_stat_activity WHERE pid = $1', [$backend])->column();

        return isset($state[0]) && \is_string($state[0]) ? $state[0] : null;
    }

    /** @return int number of processes with a client, of one application or of all */
    public function backends(?string $application = null): int
    {
        $count = $this->connection->query(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            . ' AND ($1::text IS NULL OR application_name = $1)',
            [$application],
        )->value();
        \assert(\is_int($count));

        return $count;
    }

    /** @return int number of processes of the application that are in pg_sleep() */
    public function sleepingProcesses(string $application): int
    {
        $count = $this->connection->query(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = \$1 AND wait_event = 'PgSleep'",
            [$application],
        )->value();
        \assert(\is_int($count));

        return $count;
    }

    public function terminate(int $backend): void
    {
        $this->connection->query('SELECT pg_terminate_backend($1)', [$backend]);
    }
}
