<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\UnsupportedFeatureException;
use Spindle\Internal\IgnoredSignals;
use Spindle\Internal\LoopTurn;

/**
 * Ctrl-C, SIGTERM and SIGUSR1, where ext-pcntl lets them be heard; elsewhere they end this process at once, and its
 * launcher ends the jobs. Signals that this process was started with ignored stay ignored.
 */
final class Interrupts
{
    // The constants SIGINT and SIGTERM are pcntl's. SIGUSR1 differs between systems.
    private const INT = 2;
    private const TERM = 15;
    private const USR1 = \PHP_OS_FAMILY === 'Linux' ? 10 : 30;

    private ?int $status = null;

    /** @var list<string> */
    private array $watchers = [];

    /**
     * @param \Closure(): void $stop start no more; called once at most
     * @param \Closure(): void $end  end what runs as well
     * @param \Closure(): void $list list what runs
     */
    public function __construct(
        private readonly \Closure $stop,
        private readonly \Closure $end,
        \Closure $list,
    ) {
        $handlers = [self::INT => $this->interrupted(...), self::TERM => $this->terminated(...), self::USR1 => $list];
        try {
            $ignored = IgnoredSignals::among(array_keys($handlers));
            foreach (array_diff_key($handlers, array_flip($ignored)) as $signal => $handler) {
                $this->watchers[] = EventLoop::unreference(EventLoop::onSignal($signal, $handler));
            }
        } catch (UnsupportedFeatureException) {
            // No pcntl: the signals do what they do by default.
        }
        self::letLoopInstallHandlers();
    }

    /** What to exit with because of a signal; null when there was none. */
    public function status(): ?int
    {
        return $this->status;
    }

    public function forget(): void
    {
        array_map(EventLoop::cancel(...), $this->watchers);
        $this->watchers = [];
    }

    /** The event loop installs the handlers when it turns next. Until then an interrupt would end this process. */
    private static function letLoopInstallHandlers(): void
    {
        LoopTurn::await();
    }

    private function interrupted(): void
    {
        if ($this->status === null) {
            $this->status = ExitStatus::INTERRUPTED;
            ($this->stop)();
        } else {
            ($this->end)();
        }
    }

    private function terminated(): void
    {
        $this->status = ExitStatus::TERMINATED;
        ($this->end)();
    }
}
