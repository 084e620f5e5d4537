<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Revolt\EventLoop;
use Spindle\Internal\IgnoredSignals;

/**
 * Collects signals. Each signal stops the event loop, so that the supervisor can handle the signal. A SIGINT or SIGTERM
 * that this process already ignores stays ignored.
 */
final class SignalInbox
{
    /** @var list<int> */
    private readonly array $signals;

    /** @var list<int> */
    private array $received = [];

    public readonly bool $ignoresInterrupt;

    public function __construct()
    {
        pcntl_async_signals(true);
        $ending = [\SIGTERM, \SIGINT];
        // The script that runs the supervisor may have set handlers for these signals. Such handlers are kept.
        $free = array_filter(
            [\SIGQUIT, \SIGUSR1, \SIGUSR2],
            static fn(int $signal): bool => pcntl_signal_get_handler($signal) === \SIG_DFL,
        );
        $ignored = IgnoredSignals::among($ending);
        $this->ignoresInterrupt = \in_array(\SIGINT, $ignored, true);
        $this->signals = [
            ...array_diff($ending, $ignored),
            ...array_values($free),
            \SIGHUP,
            \SIGCHLD,
        ];
        foreach ($this->signals as $signal) {
            pcntl_signal($signal, function (int $signal): void {
                $this->received[] = $signal;
                EventLoop::getDriver()->stop();
            }, false);
        }
    }

    /** @return list<int> signals since the last call */
    public function take(): array
    {
        $received = $this->received;
        $this->received = [];

        return $received;
    }

    public function isEmpty(): bool
    {
        return $this->received === [];
    }

    public function close(): void
    {
        foreach ($this->signals as $signal) {
            pcntl_signal($signal, \SIG_DFL);
        }
    }
}
