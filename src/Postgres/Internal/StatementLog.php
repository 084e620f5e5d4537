<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Psr\Log\LoggerInterface;

/** Logs what a connection does: with its number, the server's process and the statement, never with values. */
final readonly class StatementLog
{
    /** Whether there is a logger. */
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

    /**
     * Logs the outcome of a statement.
     *
     * @param int $took nanoseconds; logged in seconds
     */
    public function logOutcome(string $message, string $sql, int $took): void
    {
        $this->logger?->debug(
            $message,
            ['connection' => $this->connection, 'pid' => $this->pid, 'sql' => $sql, 'took' => $took / 1e9],
        );
    }
}
