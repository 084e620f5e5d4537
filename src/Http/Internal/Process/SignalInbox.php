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
    private readonly \Closure $handler;

    /** @var array<int, mixed> the script's handlers by signal, which {@see close()} restores */
    private array $replaced = [];

    /** @var list<int> signals for which {@see take()} replaces later handlers of the script by {@see $handler} */
    private readonly array $own;

    /**
     * Signals since the last {@see take()}. The initial SIGCHLD makes the first wait end at once. In this wait, the
     * event loop sets the script's handlers of onSignal(). Then take() replaces them.
     *
     * @var list<int>
     */
    private array $received = [\SIGCHLD];

    public readonly bool $ignoresInterrupt;

    public function __construct()
    {
        pcntl_async_signals(true);
        $ending = [\SIGTERM, \SIGINT];
        // Signals with a handler of the script are not tested. IgnoredSignals sends each signal to a fork. The handler
        // would run in this fork, which would survive as if the signal were ignored.
        $ignored = [
            ...IgnoredSignals::among(self::handledBy(\SIG_DFL, $ending)),
            ...self::handledBy(\SIG_IGN, $ending),
        ];
        $this->ignoresInterrupt = \in_array(\SIGINT, $ignored, true);
        // The script may have handlers for SIGQUIT, SIGUSR1 and SIGUSR2. These handlers are kept.
        $free = self::handledBy(\SIG_DFL, [\SIGQUIT, \SIGUSR1, \SIGUSR2]);
        $this->handler = function (int $signal): void {
            $this->received[] = $signal;
            EventLoop::getDriver()->stop();
        };
        $this->own = [...array_diff($ending, $ignored), \SIGHUP];
        array_map($this->handle(...), [...$this->own, ...$free, \SIGCHLD]);
    }

    /** @return list<int> signals since the last call */
    public function take(): array
    {
        // After onSignal(), the event loop sets its own handler when it runs next, and SIG_DFL after a cancel().
        array_map($this->handle(...), $this->own);
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
        foreach ($this->replaced as $signal => $handler) {
            /** @var callable|int $handler */
            pcntl_signal_get_handler($signal) === $this->handler ? pcntl_signal($signal, $handler) : null;
        }
    }

    private function handle(int $signal): void
    {
        $handler = pcntl_signal_get_handler($signal);
        if ($handler !== $this->handler) {
            $this->replaced[$signal] = $handler;
            pcntl_signal($signal, $this->handler, false);
        }
    }

    /**
     * @param list<int> $signals
     *
     * @return list<int> the signals that have this handler: SIG_DFL or SIG_IGN
     */
    private static function handledBy(int $handler, array $signals): array
    {
        return array_values(array_filter(
            $signals,
            static fn(int $signal): bool => pcntl_signal_get_handler($signal) === $handler,
        ));
    }
}
