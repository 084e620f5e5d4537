<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Testing\ServerException;
use Spindle\Internal\Testing\TestServer;
use Spindle\Internal\Testing\TestServerState;
use Spindle\Internal\Testing\Wait;

final class Server
{
    private const SIGINT = 2;
    private const SIGQUIT = 3;

    /** Maximum seconds to wait after each signal: SIGINT for a fast shutdown, SIGQUIT for an immediate one. */
    private const SIGNAL_TIMEOUTS = [self::SIGINT => 5.0, self::SIGQUIT => 2.0];

    /** Maximum seconds to wait for the children of a killed server. A busy child ends after its statement. */
    private const ORPHAN_TIMEOUT = 1.0;

    private readonly TestServerState $state;

    private readonly TestServer $server;

    /** @param list<string> $command command that runs the server in the foreground */
    public function __construct(private readonly string $directory, array $command)
    {
        $this->state = PostgresLeftovers::of($directory);
        $this->server = new TestServer(
            'PostgreSQL',
            $command,
            $this->state,
            static fn(): int => (int) (PostgresLeftovers::pidFileLines($directory)[0] ?? 0),
        );
    }

    /**
     * Starts the server. Returns when the server accepts connections.
     *
     * @throws ServerException when the server does not start. In this case, the server's main process is not running
     */
    public function start(float $timeout): void
    {
        if (!Wait::until(fn(): bool => $this->state->processes() === [], self::ORPHAN_TIMEOUT)) {
            $this->state->kill();
        }
        $earlier = PostgresLeftovers::pidFileLines($this->directory);
        $this->server->start(fn(): bool => $this->isReady($earlier), $timeout);
    }

    /** Returns the id of the server's main process; 0 while it is unknown, null while that process is not running. */
    public function pid(): ?int
    {
        return $this->server->pid();
    }

    /** Stops the server, and returns when it has ended. Disconnects clients. Committed data are kept. */
    public function stop(): void
    {
        $this->server->stop(self::SIGNAL_TIMEOUTS);
    }

    /** Kills the postmaster by SIGKILL. Its child processes notice this, and end. */
    public function kill(): void
    {
        $this->server->kill();
    }

    /** @throws ServerException when the log can't be read */
    public function log(): string
    {
        return $this->server->log();
    }

    /** @param array<int, string> $earlier lines of postmaster.pid before the start, which a killed server has left */
    private function isReady(array $earlier): bool
    {
        $lines = PostgresLeftovers::pidFileLines($this->directory);

        return $lines !== $earlier && \in_array(trim($lines[7] ?? ''), ['ready', 'standby'], true);
    }
}
