<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\UnsupportedFeatureException;

/**
 * Ctrl-C and SIGTERM, where ext-pcntl lets them be heard; elsewhere they end this process at once, and its launcher ends
 * the jobs.
 */
final class Interrupts
{
    // The constants SIGINT and SIGTERM are pcntl's.
    private const INT = 2;
    private const TERM = 15;

    private ?int $status = null;

    /** @var list<string> */
    private array $watchers = [];

    /**
     * @param \Closure(): void $stop start no more; called once at most
     * @param \Closure(): void $end  end what runs as well
     */
    public function __construct(private readonly \Closure $stop, private readonly \Closure $end)
    {
        try {
            $this->watchers = [
                EventLoop::unreference(EventLoop::onSignal(self::INT, $this->interrupted(...))),
                EventLoop::unreference(EventLoop::onSignal(self::TERM, $this->terminated(...))),
            ];
        } catch (UnsupportedFeatureException) {
            // No pcntl: the signals do what they do by default.
        }
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
