<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Postgres\Testing\ClusterException;

/** The server of a data directory, which can be ended and started again. */
final class Server
{
    private const SIGINT = 2;
    private const SIGQUIT = 3;
    private const SIGKILL = 9;
    private const SIGCONT = 18;

    /** Seconds that a server is given to disconnect its clients and write down what it has; then to end at once. */
    private const FAST = 5.0;
    private const IMMEDIATE = 2.0;

    /** Seconds that the children of a killed server are given to notice; a busy one notices when its statement is done. */
    private const ORPHANS = 1.0;

    private const LOG_LINES = 20;

    /** @var resource|null what was started last and is not known to have ended: the postmaster, or a parent of it */
    private mixed $process = null;

    /** @param list<string> $command that runs it, in the foreground */
    public function __construct(private readonly string $directory, private readonly array $command) {}

    /**
     * Returns when it takes connections.
     *
     * @throws ClusterException when it does not; then it does not run either
     */
    public function start(float $timeout): void
    {
        $orphans = fn(): bool => Leftovers::processes($this->directory) !== [];
        if (!Leftovers::wait(static fn(): bool => !$orphans(), self::ORPHANS)) {
            Leftovers::killProcesses($this->directory);
        }
        $earlier = Leftovers::postmaster($this->directory);
        $this->process = Program::start($this->command, $this->logFile());
        $end = hrtime(true) + (int) ($timeout * 1e9);
        while (!$this->isReady($earlier)) {
            if (!$this->isRunning()) {
                throw ClusterException::serverEnded($this->endOfLog());
            }
            if (hrtime(true) >= $end) {
                $this->kill();

                throw ClusterException::late($timeout, $this->endOfLog());
            }
            usleep((int) (Leftovers::LOOK * 1e6));
        }
    }

    /** The postmaster's id; null when it does not run. */
    public function pid(): ?int
    {
        return $this->isRunning() ? (int) (Leftovers::postmaster($this->directory)[0] ?? 0) : null;
    }

    /** In an orderly way if it can: clients are disconnected, nothing is lost. Returns when it has ended. */
    public function end(): void
    {
        foreach ([self::SIGINT => self::FAST, self::SIGQUIT => self::IMMEDIATE] as $signal => $seconds) {
            $this->signal($signal);
            Leftovers::signal($this->directory, self::SIGCONT);
            if (Leftovers::wait(fn(): bool => !$this->isRunning(), $seconds)) {
                return;
            }
        }
        $this->kill();
    }

    /** Kills the postmaster and leaves its children to themselves, as the kernel does when it lacks memory. */
    public function kill(): void
    {
        $this->signal(self::SIGKILL);
        Leftovers::wait(fn(): bool => !$this->isRunning(), self::IMMEDIATE);
    }

    public function logFile(): string
    {
        return "{$this->directory}/log";
    }

    public function endOfLog(): string
    {
        $log = explode("\n", trim((string) @file_get_contents($this->logFile())));

        return implode("\n", \array_slice($log, -self::LOG_LINES));
    }

    private function signal(int $signal): void
    {
        $pid = (int) $this->pid();
        if ($pid > 0) {
            Signals::send($pid, $signal);
        } elseif (\is_resource($this->process)) {
            proc_terminate($this->process, $signal); // too early for it to have said what its id is
        }
    }

    private function isRunning(): bool
    {
        if ($this->process !== null && !proc_get_status($this->process)['running']) {
            proc_close($this->process);
            $this->process = null;
        }

        return $this->process !== null;
    }

    /** @param array<int, string> $earlier what another server has left */
    private function isReady(array $earlier): bool
    {
        $postmaster = Leftovers::postmaster($this->directory);

        return $postmaster !== $earlier && \in_array(trim($postmaster[7] ?? ''), ['ready', 'standby'], true);
    }
}
