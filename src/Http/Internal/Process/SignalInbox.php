<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Internal\IgnoredSignals;

/**
 * The signals that the supervisor has been sent. One that comes while it waits for streams ends the wait. If SIGINT or
 * SIGTERM was ignored when this process started, it stays ignored.
 */
final class SignalInbox
{
    /** @var list<int> */
    private readonly array $signals;

    /** @var list<int> */
    private array $received = [];

    public function __construct()
    {
        pcntl_async_signals(true);
        $ending = [\SIGTERM, \SIGINT];
        $this->signals = [...array_diff($ending, IgnoredSignals::among($ending)), \SIGQUIT, \SIGHUP, \SIGCHLD, \SIGUSR1, \SIGUSR2];
        foreach ($this->signals as $signal) {
            pcntl_signal($signal, function (int $signal): void {
                $this->received[] = $signal;
            }, false);
        }
    }

    /** @return list<int> those that came since the last call */
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
