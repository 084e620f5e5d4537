<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Testing\Daemon;
use Spindle\Internal\Testing\Remains;
use Spindle\Internal\Testing\ServerException;
use Spindle\Internal\Testing\Wait;

/** The server of a data directory, which can be ended and started again. */
final class Server
{
    private const SIGINT = 2;
    private const SIGQUIT = 3;

    /** Seconds that a server is given to disconnect its clients and write down what it has; then to end at once. */
    private const ENDING = [self::SIGINT => 5.0, self::SIGQUIT => 2.0];

    /** Seconds that the children of a killed server are given to notice; a busy one notices when its statement is done. */
    private const ORPHANS = 1.0;

    private readonly Remains $remains;

    private readonly Daemon $daemon;

    /** @param list<string> $command that runs it, in the foreground */
    public function __construct(private readonly string $directory, array $command)
    {
        $this->remains = Leftovers::of($directory);
        $this->daemon = new Daemon('PostgreSQL', $command, $this->remains, static fn(): int => (int) (Leftovers::postmaster($directory)[0] ?? 0));
    }

    /**
     * Returns when it takes connections.
     *
     * @throws ServerException when it does not; then it does not run either
     */
    public function start(float $timeout): void
    {
        if (!Wait::until(fn(): bool => $this->remains->processes() === [], self::ORPHANS)) {
            $this->remains->kill();
        }
        $earlier = Leftovers::postmaster($this->directory);
        $this->daemon->start(fn(): bool => $this->isReady($earlier), $timeout);
    }

    /** The postmaster's id; null when it does not run. */
    public function pid(): ?int
    {
        return $this->daemon->pid();
    }

    /** In an orderly way if it can: clients are disconnected, nothing is lost. Returns when it has ended. */
    public function end(): void
    {
        $this->daemon->end(self::ENDING);
    }

    /** Kills the postmaster and leaves its children to themselves. */
    public function kill(): void
    {
        $this->daemon->kill();
    }

    /** @throws ServerException when it can't be read */
    public function log(): string
    {
        return $this->daemon->log();
    }

    /** @param array<int, string> $earlier what another server has left */
    private function isReady(array $earlier): bool
    {
        $postmaster = Leftovers::postmaster($this->directory);

        return $postmaster !== $earlier && \in_array(trim($postmaster[7] ?? ''), ['ready', 'standby'], true);
    }
}
