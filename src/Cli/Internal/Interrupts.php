<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\UnsupportedFeatureException;
use Spindle\Internal\IgnoredSignals;
use Spindle\Internal\LoopTurn;

/**
 * Handles Ctrl-C, SIGTERM and SIGUSR1 when ext-pcntl is available. Without it these signals end this process at once,
 * and its launcher ends the jobs. Signals that were ignored when this process started stay ignored.
 */
final class Interrupts
{
    // Signal numbers, because SIGINT and SIGTERM are constants of pcntl. SIGUSR1 differs between systems.
    private const SIGINT = 2;
    private const SIGTERM = 15;
    private const SIGUSR1 = \PHP_OS_FAMILY === 'Linux' ? 10 : 30;

    private ?int $status = null;

    /** @var list<string> */
    private array $watchers = [];

    /**
     * @param \Closure(): void $stop starts no more jobs; called at most once
     * @param \Closure(): void $end  ends running jobs as well
     * @param \Closure(): void $list lists running jobs
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

    /** Returns the exit status for the signal that was received; null without one. */
    public function status(): ?int
    {
        return $this->status;
    }

    public function removeHandlers(): void
    {
        array_map(EventLoop::cancel(...), $this->watchers);
        $this->watchers = [];
    }

    /** Waits for one turn of the event loop, which installs the handlers. Before it, an interrupt ends this process. */
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
