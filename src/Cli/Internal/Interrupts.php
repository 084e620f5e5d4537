<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop;

/**
 * Ctrl-C and SIGTERM, where ext-pcntl lets them be heard; elsewhere they end this process at once, and its launcher ends
 * the jobs.
 */
final class Interrupts
{
    private ?int $status = null;

    /** @var list<string> */
    private array $watchers = [];

    /**
     * @param \Closure(): void $stop start no more; called once at most
     * @param \Closure(): void $end  end what runs as well
     */
    public function __construct(private readonly \Closure $stop, private readonly \Closure $end)
    {
        if (\extension_loaded('pcntl')) {
            $this->watchers = [
                EventLoop::unreference(EventLoop::onSignal(\SIGINT, $this->interrupted(...))),
                EventLoop::unreference(EventLoop::onSignal(\SIGTERM, $this->terminated(...))),
            ];
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
