<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Psr\Log\LoggerInterface;

/** Logs the steps of a connection with its number, the server's process id and the SQL, but without parameters. */
final readonly class StatementLog
{
    public bool $isEnabled;

    public function __construct(private ?LoggerInterface $logger, private int $connection, private int $pid)
    {
        $this->isEnabled = $logger !== null;
    }

    public function log(string $message, string $sql = ''): void
    {
        $this->logger?->debug(
            $message,
            ['connection' => $this->connection, 'pid' => $this->pid, ...($sql === '' ? [] : ['sql' => $sql])],
        );
    }

    /** @param int $nanoseconds how long the caller has waited; the log entry has the time in seconds */
    public function logOutcome(string $message, string $sql, int $nanoseconds): void
    {
        $this->logger?->debug(
            $message,
            ['connection' => $this->connection, 'pid' => $this->pid, 'sql' => $sql, 'duration' => $nanoseconds / 1e9],
        );
    }
}
