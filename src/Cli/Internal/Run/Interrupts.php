<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Revolt\EventLoop;
use Revolt\EventLoop\UnsupportedFeatureException;
use Spindle\Cli\Internal\ExitStatus;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\IgnoredSignals;

/**
 * Handles Ctrl-C, SIGTERM and SIGUSR1. Without ext-pcntl, these signals end this process at once, and its launcher ends
 * the jobs. Signals that were ignored when this process started stay ignored.
 */
final class Interrupts
{
    // Signal numbers, because SIGINT and SIGTERM are constants of pcntl. SIGUSR1 differs between systems.
    private const SIGINT = 2;
    private const SIGTERM = 15;
    private const SIGUSR1 = \PHP_OS_FAMILY === 'Linux' ? 10 : 30;

    private ?int $status = null;

    /** @var list<string> ids of the event loop's watchers */
    private array $watchers = [];

    /**
     * @param \Closure(): void $stop stops the start of jobs; called at most once, for the first Ctrl-C
     * @param \Closure(): void $end  ends running jobs; called for SIGTERM and each further Ctrl-C
     * @param \Closure(): void $list lists running jobs; called for SIGUSR1
     */
    public function __construct(
        private readonly \Closure $stop,
        private readonly \Closure $end,
        \Closure $list,
    ) {
        $handlers = [
            self::SIGINT => $this->onInterrupt(...),
            self::SIGTERM => $this->onTerminate(...),
            self::SIGUSR1 => $list,
        ];
        try {
            $ignored = IgnoredSignals::among(array_keys($handlers));
            foreach (array_diff_key($handlers, array_flip($ignored)) as $signal => $handler) {
                $this->watchers[] = EventLoop::unreference(EventLoop::onSignal($signal, $handler));
            }
        } catch (UnsupportedFeatureException) {
            // Without pcntl the signals have their default effect.
        }
        self::letLoopInstallHandlers();
    }

    /** Returns the exit status after SIGTERM, or else after Ctrl-C; null if neither was received. */
    public function status(): ?int
    {
        return $this->status;
    }

    public function removeHandlers(): void
    {
        array_map(EventLoop::cancel(...), $this->watchers);
        $this->watchers = [];
    }

    /** Waits until the event loop has installed the handlers. Before that, an interrupt would kill this process. */
    private static function letLoopInstallHandlers(): void
    {
        LoopTurn::await();
    }

    private function onInterrupt(): void
    {
        if ($this->status === null) {
            $this->status = ExitStatus::INTERRUPTED;
            ($this->stop)();
        } else {
            ($this->end)();
        }
    }

    private function onTerminate(): void
    {
        $this->status = ExitStatus::TERMINATED;
        ($this->end)();
    }
}
