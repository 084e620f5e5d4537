<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** The signals that the supervisor has been sent. One that comes while it waits for streams ends the wait. */
final class SignalInbox
{
    /** @var list<int> */
    private array $received = [];

    public function __construct()
    {
        pcntl_async_signals(true);
        foreach ([\SIGTERM, \SIGINT, \SIGHUP, \SIGCHLD] as $signal) {
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
        foreach ([\SIGTERM, \SIGINT, \SIGHUP, \SIGCHLD] as $signal) {
            pcntl_signal($signal, \SIG_DFL);
        }
    }
}
