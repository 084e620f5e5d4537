<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Revolt\EventLoop;
use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\Run\Output\Console;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\IgnoredSignals;
use Spindle\Internal\SignalWatch;

/**
 * Handles SIGUSR1 and, after {@see handleTermination()}, Ctrl-C and SIGTERM. Without ext-pcntl, these signals end this
 * process immediately. The launcher, a helper process, then ends the jobs. Signals that were ignored when this process
 * started stay ignored.
 */
final class Interrupts
{
    // PHP has constants with these numbers only with ext-pcntl. The number of SIGUSR1 differs between systems.
    private const SIGINT = 2;
    private const SIGTERM = 15;
    private const SIGUSR1 = \PHP_OS_FAMILY === 'Linux' ? 10 : 30;

    /** Exit status for the received signal; null if there was none. SIGTERM has precedence over Ctrl-C. */
    public ?int $status = null;

    /** @var list<string> ids of the event loop's watchers */
    private array $watchers = [];

    public function __construct(
        private readonly Console $console,
        private readonly JobControl $control,
        private readonly RunStatistics $statistics,
    ) {
        $this->handle([self::SIGUSR1 => $this->listRunning(...)]);
    }

    /** Handles Ctrl-C and SIGTERM. Before this call, they end this process immediately. */
    public function handleTermination(): void
    {
        $this->handle([self::SIGINT => $this->onInterrupt(...), self::SIGTERM => $this->onTerminate(...)]);
    }

    /** @param array<int, \Closure(string, int): void> $handlers by signal */
    private function handle(array $handlers): void
    {
        $ignored = IgnoredSignals::among(array_keys($handlers));
        array_push($this->watchers, ...SignalWatch::start(array_diff_key($handlers, array_flip($ignored))));
        // The event loop installs the handlers in its next turn. Until then, an interrupt would kill this process.
        LoopTurn::await();
    }

    public function removeHandlers(): void
    {
        array_map(EventLoop::cancel(...), $this->watchers);
        $this->watchers = [];
    }

    /** Stops starting jobs at the first Ctrl-C. Ends the running jobs at each further Ctrl-C. */
    private function onInterrupt(): void
    {
        if ($this->status !== null) {
            $this->endJobs();

            return;
        }
        $this->status = ExitStatus::INTERRUPTED;
        $this->console->notice(
            'interrupted: no more jobs start, and running jobs may finish; interrupt again to end them',
        );
        $this->control->startNoMoreJobs();
    }

    private function onTerminate(): void
    {
        $this->status = ExitStatus::TERMINATED;
        $this->endJobs();
    }

    private function endJobs(): void
    {
        $this->console->abandonOutput();
        $this->control->kill();
    }

    private function listRunning(): void
    {
        $running = $this->control->runningJobs();
        $this->console->notice(\sprintf(
            'running jobs: %d, finished: %d',
            \count($running),
            $this->statistics->doneCount(),
        ));
        foreach ($running as $job) {
            $this->console->notice("running: job {$job->sequence}: {$job->loggedCommand()}");
        }
    }
}
