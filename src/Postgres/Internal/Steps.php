<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Psr\Log\LoggerInterface;

/** Tells a logger what a connection does: with its number, the server's process and the statement, never with values. */
final readonly class Steps
{
    /** Whether anybody is told. */
    public bool $wanted;

    public function __construct(private ?LoggerInterface $logger, private int $connection, private int $pid)
    {
        $this->wanted = $logger !== null;
    }

    public function log(string $message, string $sql = ''): void
    {
        $this->logger?->debug($message, ['connection' => $this->connection, 'pid' => $this->pid, ...($sql === '' ? [] : ['sql' => $sql])]);
    }

    /**
     * A statement has an outcome.
     *
     * @param int $took nanoseconds, which are told in seconds
     */
    public function logOutcome(string $message, string $sql, int $took): void
    {
        $this->logger?->debug($message, ['connection' => $this->connection, 'pid' => $this->pid, 'sql' => $sql, 'took' => $took / 1e9]);
    }
}
