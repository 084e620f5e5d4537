<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerStartException;

/** Runs workers as forks or threads of one process, the host. A {@see ProcessContext} starts and ends the host. */
final class HostedContext implements Context, ContextEvents
{
    /** Id of the host in its {@see ProcessContext}. The ids of workers start at 1. */
    private const HOST = 0;

    private const SIGTERM = 15;
    private const SIGKILL = 9;

    /** Seconds between two checks whether the host is suspended (SIGSTOP) and therefore cannot end a worker. */
    private const CHECK_INTERVAL = 1.0;

    /** Longest wait of {@see drain()} for the last output of forks. */
    private const LAST_OUTPUT_NANOSECONDS = 100_000_000;

    private const DRAIN_INTERVAL_MICROSECONDS = 500;

    private readonly ProcessContext $hostContext;
    private ?WorkerLink $link = null;

    private int $pid = 0;
    private bool $started = false;
    private bool $ready = false;

    /** Whether the host is being ended before it was ready. Waiting workers then need another host. */
    private bool $discarded = false;

    /** State that the next fork inherits from the host; null for a host of threads. */
    private ?InheritedState $inherited = null;

    /** @var array<int, array<string, mixed>> settings of workers that wait for the host to be ready, by worker */
    private array $waiting = [];

    /** @var array<int, true> workers for which {@see start()} was called and that have not ended */
    private array $workers = [];

    /** @var array<int, string> by worker: timer of the next step to end the worker, see {@see forceEnd()} */
    private array $timers = [];

    /** @var array<int, int> by worker: sequence number of the request to end the worker */
    private array $requestedEnds = [];

    /**
     * @var array<int, array{int, array<string, mixed>}> by worker: sequence number and settings of a START frame that
     *     was sent after a request to end another thread. While the host waits for the end of that thread, it reads no
     *     frames. So the host may end before it has read the START frame
     */
    private array $startsAfterEnd = [];

    /** Last sequence number of a request to end a worker, or of a START frame in $startsAfterEnd. */
    private int $sequence = 0;
    private ?WorkerStartException $failure = null;
    private string $stderr = '';

    /**
     * @param string                                  $kind        fork or thread
     * @param \Closure(ContextEvents): ProcessContext $createHostContext
     * @param float                                   $gracePeriod seconds between SIGTERM and SIGKILL
     * @param string                                  $advice      end of the message if the host can't start; or ''
     */
    public function __construct(
        private readonly ContextEvents $events,
        private readonly string $kind,
        \Closure $createHostContext,
        private readonly float $gracePeriod,
        private readonly string $advice,
    ) {
        $this->hostContext = $createHostContext($this);
    }

    public function start(int $id, #[\SensitiveParameter] array $settings): void
    {
        if ($this->kind === 'fork') {
            $settings['inherited'] ??= InheritedState::current();
        }
        if (!$this->started) {
            $this->failure = null;
            $this->stderr = '';
            $this->inherited = $this->kind === 'fork' ? InheritedState::current() : null;
            $this->hostContext->start(self::HOST, ['host' => $this->kind, 'inherited' => null] + $settings);
            $this->started = true;
        }
        $this->workers[$id] = true;
        $this->ready ? $this->send($id, $settings) : $this->waiting[$id] = $settings;
    }

    public function end(int $id): void
    {
        if (isset($this->waiting[$id])) {
            unset($this->waiting[$id], $this->workers[$id]);
            if ($this->waiting === [] && !$this->discarded) {
                $this->discarded = true; // the host was not ready, so it has no workers
                $this->hostContext->end(self::HOST);
            }
            $this->events->onEnded($id, null, self::SIGTERM, 0);

            return;
        }
        $this->link?->send(WorkerProtocol::frame(WorkerProtocol::KILL, $id, pack('V', self::SIGTERM)));
        $this->requestedEnds[$id] ??= ++$this->sequence;
        $forceEnd = static fn(self $context) => $context->forceEnd($id);
        $this->timers[$id] ??= WeakTimer::after($this->gracePeriod, $this, $forceEnd);
    }

    private function forceEnd(int $id): void
    {
        unset($this->timers[$id]);
        if ($this->kind === 'thread') {
            $this->hostContext->end(self::HOST); // a blocked thread can be ended only with its process
        } else {
            $this->link?->send(WorkerProtocol::frame(WorkerProtocol::KILL, $id, pack('V', self::SIGKILL)));
            $this->watchHost($id);
        }
    }

    /**
     * Checks the host until the worker has ended. Ends a host that is suspended (SIGSTOP) or a zombie (Z). If the host
     * is a zombie, its launcher may be suspended. The frame that end() sends makes the pool check the launcher, too.
     */
    private function watchHost(int $id): void
    {
        $check = static function (self $context) use ($id): void {
            unset($context->timers[$id]);
            if (\in_array(ProcessTree::state($context->pid), ['T', 't', 'Z'], true)) {
                $context->hostContext->end(self::HOST);
            } elseif (isset($context->workers[$id])) {
                $context->watchHost($id);
            }
        };
        $this->timers[$id] = WeakTimer::after(self::CHECK_INTERVAL, $this, $check);
    }

    public function onDisconnected(int $id): void
    {
        $this->link?->send(WorkerProtocol::frame(WorkerProtocol::REAP, $id));
    }

    public function onConnected(WorkerLink $link, int $type, string $data): bool
    {
        if ($type !== WorkerProtocol::HOST || $this->link !== null) {
            return false;
        }
        // The callback for the end of the connection does nothing, because onEnded() follows when the host has ended.
        $link->listen($this->receive(...), static fn() => null, \PHP_INT_MAX, WorkerProtocol::MAGIC);
        $this->link = $link;
        /** @var array{1: int} $pid */
        $pid = unpack('V', $data);
        $this->pid = $pid[1];

        return true;
    }

    public function drain(): void
    {
        // With ext-ffi, the host passes on the standard error of a fork before it reports that the fork has ended.
        // So the output is complete when no fork is left in $workers.
        $deadline = hrtime(true) + self::LAST_OUTPUT_NANOSECONDS;
        while ($this->kind === 'fork' && $this->link !== null && $this->workers !== [] && hrtime(true) < $deadline) {
            $this->link->readAll();
            usleep(self::DRAIN_INTERVAL_MICROSECONDS);
        }
        $this->hostContext->drain();
    }

    public function close(): void
    {
        array_map(EventLoop::cancel(...), $this->timers);
        $this->timers = [];
        $this->link?->close();
        $this->hostContext->close();
        $this->link = null;
        $this->started = $this->ready = $this->discarded = false;
        $this->workers = $this->waiting = $this->requestedEnds = $this->startsAfterEnd = [];
    }

    public function onEnded(int $id, ?int $exitCode, ?int $signal, int $memoryPeak): void
    {
        $this->link?->readAll();
        $how = $signal === null ? "exit code {$exitCode}" : "signal {$signal}";
        // If a signal ended the host, waiting workers are reported as lost, so that the pool starts other workers.
        $failure = $this->failure ?? ($signal === null
            ? WorkerStartException::ended($how, $this->stderr, $this->advice)
            : null);
        $this->hostEnded($how, $failure, [$exitCode, $signal, $memoryPeak]);
    }

    public function onNotStarted(int $id, WorkerStartException $why): void
    {
        $this->hostEnded($why->getMessage(), $why);
    }

    public function onPrinted(int $id, string $bytes, bool $isError): void
    {
        if ($isError) {
            $this->stderr = substr($this->stderr . $bytes, -WorkerHandle::MAX_STDERR_BYTES);
        }
        $this->events->onPrinted(self::HOST, $bytes, $isError);
    }

    public function onLost(string $how): void
    {
        $this->hostEnded($how, null);
    }

    public function onDestroyed(): void
    {
        $this->events->onDestroyed();
    }

    /**
     * @param WorkerStartException|null $failure exception for waiting workers; null to report these workers as lost
     * @param array{int|null, int|null, int}|null $exit exit code, signal and memory peak of the host; null if unknown
     */
    private function hostEnded(string $how, ?WorkerStartException $failure, ?array $exit = null): void
    {
        $waiting = $this->waiting;
        $discarded = $this->discarded;
        $output = trim($this->stderr);
        $unread = $exit === null ? [] : $this->unreadStarts();
        $workers = array_diff_key($this->workers, $discarded || $failure !== null ? $waiting : [], $unread);
        $this->close(); // also ends all processes that the host left behind
        foreach ($discarded ? $waiting : $unread as $id => $settings) {
            $this->restart($id, $settings);
        }
        foreach ($waiting as $id => $_) {
            if ($failure !== null && !$discarded) {
                $this->events->onNotStarted($id, $failure);
            }
        }
        if ($discarded) {
            return; // the host had no workers
        }
        if ($this->kind !== 'thread' || $exit === null) {
            $this->events->onLost($output === '' ? $how : "{$how}; its standard error ended with: {$output}");

            return;
        }
        foreach ($workers as $id => $_) {
            $this->events->onEnded($id, ...$exit); // a thread ends together with its process
        }
    }

    /** @param array<string, mixed> $settings */
    private function restart(int $id, #[\SensitiveParameter] array $settings): void
    {
        try {
            $this->start($id, $settings);
        } catch (WorkerStartException $failure) {
            $this->events->onNotStarted($id, $failure);
        }
    }

    /** @return array<int, array<string, mixed>> settings of the threads whose START frame the host has not read */
    private function unreadStarts(): array
    {
        $first = $this->requestedEnds === [] ? \PHP_INT_MAX : min($this->requestedEnds);

        return array_map(
            static fn(array $start): array => $start[1],
            array_filter($this->startsAfterEnd, static fn(array $start): bool => $start[0] > $first),
        );
    }

    /** @param array<string, mixed> $settings */
    private function send(int $id, #[\SensitiveParameter] array $settings): void
    {
        if ($this->kind === 'thread' && $this->requestedEnds !== []) {
            $this->startsAfterEnd[$id] = [++$this->sequence, $settings];
        }
        $inherited = $settings['inherited'] ?? null;
        if ($inherited instanceof InheritedState && $this->inherited !== null) {
            $settings['inherited'] = $inherited->changesSince($this->inherited);
            $this->inherited = $inherited;
        }
        $this->link?->send(WorkerProtocol::frame(WorkerProtocol::START, $id, serialize($settings)));
    }

    private function receive(int $type, int $id, string $bytes, int $at, int $length): void
    {
        $payload = substr($bytes, $at, $length);
        if ($type === WorkerProtocol::READY && !$this->discarded) {
            $this->ready = true;
            foreach ($this->waiting as $worker => $settings) {
                $this->send($worker, $settings);
            }
            $this->waiting = [];
        } elseif ($type === WorkerProtocol::NOT_READY) {
            $this->failure = TaskOutcome::startFailure($payload);
        } elseif ($type === WorkerProtocol::NOT_STARTED && isset($this->workers[$id])) {
            $this->forget($id);
            $this->events->onNotStarted($id, WorkerStartException::impossible($payload));
        } elseif ($type === WorkerProtocol::PRINTED) {
            $this->events->onPrinted($id, $payload, true);
        } elseif ($type === WorkerProtocol::ENDED && isset($this->workers[$id])) {
            $this->forget($id);
            /** @var array{code: int, signal: int, peak: int} $exit */
            $exit = unpack('lcode/lsignal/Ppeak', $payload);
            $this->events->onEnded(
                $id,
                $exit['code'] < 0 ? null : $exit['code'],
                $exit['signal'] === 0 ? null : $exit['signal'],
                $exit['peak'],
            );
        }
    }

    private function forget(int $id): void
    {
        if (isset($this->timers[$id])) {
            EventLoop::cancel($this->timers[$id]);
        }
        unset($this->workers[$id], $this->timers[$id], $this->requestedEnds[$id], $this->startsAfterEnd[$id]);
    }
}
