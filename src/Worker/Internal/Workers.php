<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Aside;
use Spindle\Internal\WeakTimer;
use Spindle\LauncherException;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/**
 * The workers of a pool: starts them when there is work, replaces them when they are due, ends them.
 */
final class Workers implements ContextEvents
{
    /** So many in a row that end before they have begun a task, and no more are tried for now. */
    private const VAIN = 3;

    /** Seconds until another worker is started after one could not be, while others work. */
    private const PAUSE = 0.5;

    /** Seconds that the system has to tell how a worker ended whose socket is closed, before it is made to end. */
    private const TELLING = 1.0;

    /** Seconds that a worker has to end by itself once it is told to. */
    private const FAREWELL = 2.0;

    private readonly Context $context;
    private ?Reception $reception = null;

    /** @var array<int, WorkerHandle> by number */
    private array $workers = [];
    private int $last = 0;

    /** Those of them that get no more tasks. */
    private int $leaving = 0;
    private int $vain = 0;
    private ?string $pausing = null;
    private ?string $idling = null;
    private bool $closed = false;

    /** @var \Closure(): void|null called when the last one is gone */
    private ?\Closure $empty = null;

    /**
     * @param \Closure(ContextEvents): Context                              $context
     * @param \Closure(): void                                              $ready  one more can be given tasks
     * @param \Closure(WorkerHandle, int, int, string, int, int): void      $frame  type, id, and where its payload lies: bytes, offset, length
     * @param \Closure(WorkerHandle): void                                  $gone   it is no more, and all that it sent was heard
     * @param \Closure(WorkerStartException): void                          $failed there is none, and none can be started
     */
    public function __construct(
        public int $size,
        private readonly WorkerPoolOptions $options,
        private readonly Settings $settings,
        \Closure $context,
        private readonly \Closure $ready,
        private readonly \Closure $frame,
        private readonly \Closure $gone,
        private readonly \Closure $failed,
    ) {
        $this->context = $context($this);
    }

    /** @return array<int, WorkerHandle> */
    public function all(): array
    {
        return $this->workers;
    }

    public function mayGrow(): bool
    {
        return $this->surplus() < 0;
    }

    /** Starts as many more as could be given tasks, up to the pool's size. */
    public function startFor(int $demand): void
    {
        if ($demand < 1 || $this->closed || $this->pausing !== null) {
            return;
        }
        $room = $this->size;
        foreach ($this->workers as $worker) {
            if (!$worker->retiring && $worker->ending === null) {
                --$room;
                $demand -= $worker->ready ? 0 : 1;
            }
        }
        for ($i = min($room, $demand); $i > 0; --$i) {
            try {
                $this->start();
            } catch (LauncherException|WorkerStartException $failure) {
                ($this->failed)($failure instanceof WorkerStartException ? $failure : WorkerStartException::impossible($failure->getMessage(), $failure));

                return;
            }
        }
    }

    /**
     * Makes a worker end, with all that its task has started.
     *
     * @param \Closure(Batch, int): \Throwable $reason the outcome of the task that runs
     */
    public function end(WorkerHandle $worker, \Closure $reason): void
    {
        if ($worker->ending === null) {
            $this->leaving += $worker->retiring ? 0 : 1;
            $worker->ending = $reason;
            $this->context->end($worker->id);
            $worker->link?->send(Protocol::frame(Protocol::STOP, 0)); // a thread that waits for a frame is not ended before it has one
        }
    }

    /** It says what it can't: it is ended, and heard no more. */
    public function distrust(WorkerHandle $worker): void
    {
        $worker->link?->close();
        $this->disconnected($worker, 'It sent results of tasks that it does not have');
    }

    /** It has nothing to do now: it stops if it is due, or waits for as long as it may. */
    public function idle(WorkerHandle $worker): void
    {
        $worker->idleSince = microtime(true);
        if ($worker->retiring || $this->isDue($worker) || $this->surplus() > 0) {
            $this->stop($worker);
        } elseif ($this->idling === null && is_finite($this->options->idleTimeout)) {
            $this->idling = WeakTimer::after($this->options->idleTimeout, $this, static fn(self $workers) => $workers->stopIdle());
        }
    }

    /** How many more tasks it may be given. */
    public function allowance(WorkerHandle $worker): int
    {
        if (!$worker->ready || $worker->retiring || $worker->ending !== null) {
            return 0;
        }
        if ($this->options->maxAge !== null && microtime(true) - $worker->readyAt >= $this->options->maxAge) {
            if ($worker->batches === []) {
                $this->stop($worker);
            }

            return 0;
        }
        if ($this->options->maxTasks === null) {
            return \PHP_INT_MAX;
        }
        $tasks = $worker->tasks;
        foreach ($worker->batches as $batch) {
            $tasks += $batch->limit - $batch->arrived;
        }

        return max(0, $this->options->maxTasks - $tasks);
    }

    /** Has those stop that are more than the pool's size, as soon as they have nothing to do. */
    public function shrink(): void
    {
        foreach ($this->workers as $worker) {
            if ($this->surplus() < 1) {
                return;
            }
            if ($worker->isIdle()) {
                $this->stop($worker);
            }
        }
    }

    /**
     * Has all of them stop.
     *
     * @param \Closure(): void $empty called when they have, or their time is over
     */
    public function stopAll(\Closure $empty): void
    {
        $this->closed = true;
        $timer = EventLoop::delay(self::FAREWELL, $this->isEmpty(...));
        $this->empty = static function () use ($timer, $empty): void {
            EventLoop::cancel($timer);
            $empty();
        };
        foreach ($this->workers as $worker) {
            $this->stop($worker);
        }
        if ($this->workers === []) {
            $this->isEmpty();
        }
    }

    /** Ends all of them, and returns when they have. */
    public function close(): void
    {
        $this->closed = true;
        foreach ([$this->idling, $this->pausing] as $timer) {
            if ($timer !== null) {
                EventLoop::cancel($timer);
            }
        }
        $workers = $this->workers;
        $this->workers = [];
        $this->leaving = 0;
        foreach ($workers as $worker) {
            $worker->link?->close(); // which has it end by itself
        }
        $this->context->close();
        foreach ($workers as $worker) {
            $this->release($worker); // now that none of them makes anything any more
        }
        $this->reception?->close();
        $this->reception = null;
    }

    public function ended(int $id, ?int $exitCode, ?int $signal, int $peak): void
    {
        $worker = $this->workers[$id] ?? null;
        if ($worker === null) {
            return;
        }
        $worker->exit = [$exitCode, $signal, $peak];
        $worker->link?->drain();
        $this->bury($worker);
    }

    public function notStarted(int $id, WorkerStartException $why): void
    {
        $worker = $this->workers[$id] ?? null;
        if ($worker !== null) {
            $worker->startFailure ??= $why;
            $this->ended($id, null, null, 0);
        }
    }

    public function printed(int $id, string $bytes, bool $isError): void
    {
        if ($isError && isset($this->workers[$id])) {
            $this->workers[$id]->wrote($bytes);
        }
        $onOutput = $this->options->onOutput;
        if ($onOutput !== null) {
            Aside::call(static fn() => $onOutput($bytes, $isError));
        } elseif (!$isError) {
            echo $bytes;
        } elseif (\defined('STDERR')) {
            @fwrite(\STDERR, $bytes);
        } else {
            error_log($bytes);
        }
    }

    public function lost(string $how): void
    {
        foreach ($this->workers as $id => $worker) {
            $worker->wrote("The process that starts workers died ({$how})\n");
            $this->ended($id, null, 9, 0);
        }
    }

    /** @throws LauncherException|WorkerStartException */
    private function start(): void
    {
        $this->reception ??= $this->receive();
        $id = ++$this->last;
        $worker = new WorkerHandle($id, Mark::newKey());
        $this->context->start($id, $this->settings->forWorker($this->reception, $id, $worker->markKey));
        $this->workers[$id] = $worker;
        $seconds = $this->options->startTimeout;
        $worker->timers[] = WeakTimer::after($seconds, $this, static function (self $workers) use ($worker, $seconds): void {
            if (!$worker->ready) {
                $worker->startFailure = WorkerStartException::late($seconds);
                $workers->end($worker, static fn(): \Throwable => WorkerStartException::late($seconds));
            }
        });
        $this->log('Worker {id} is started', ['id' => $id]);
    }

    /** @throws WorkerStartException */
    private function receive(): Reception
    {
        $weak = \WeakReference::create($this);

        return new Reception(static function (Link $link, int $type, int $id, string $greeting) use ($weak): void {
            $weak->get()?->greeted($link, $type, $id, $greeting);
        }, static function () use ($weak): void {
            $weak->get()?->exhausted();
        });
    }

    private function greeted(Link $link, int $type, int $id, string $greeting): void
    {
        $worker = $type === Protocol::HELLO ? $this->workers[$id] ?? null : null;
        if ($worker === null || $worker->link !== null) {
            if (!$this->context->connected($link, $type)) {
                $link->close();
            }

            return;
        }
        /** @var array{pid: int, mark: int} $words */
        $words = unpack('Vpid/Cmark', $greeting);
        $worker->link = $link;
        $worker->mark = $words['mark'] === 1 ? Mark::take($worker->markKey) : null;
        $link->listen(
            function (int $type, int $number, string $bytes, int $at, int $length) use ($worker): void {
                match ($type) {
                    Protocol::READY => $this->isReady($worker, substr($bytes, $at, $length)),
                    Protocol::NOT_READY => $worker->startFailure = Outcome::startFailure(substr($bytes, $at, $length)),
                    Protocol::OUTPUT => $this->printed(0, substr($bytes, $at, $length), false),
                    Protocol::LAST_WORDS => $this->lastWords($worker, substr($bytes, $at, $length)),
                    default => ($this->frame)($worker, $type, $number, $bytes, $at, $length),
                };
            },
            function (?string $wrong) use ($worker): void {
                $this->disconnected($worker, $wrong);
            },
            \PHP_INT_MAX,
        );
    }

    private function exhausted(): void
    {
        $failure = WorkerStartException::impossible('this process has too few descriptors left for the socket of another one (see ulimit -n)');
        foreach ($this->workers as $worker) {
            if ($worker->link === null) {
                $worker->startFailure = $failure;
                $this->end($worker, static fn(): \Throwable => $failure);
            }
        }
    }

    private function isReady(WorkerHandle $worker, string $payload): void
    {
        /** @var array{memory: int} $words */
        $words = unpack('Pmemory', $payload);
        $worker->ready = true;
        $worker->readyAt = microtime(true);
        $worker->memoryAtFirst = $worker->memory = $words['memory'];
        $this->log('Worker {id} is ready', ['id' => $worker->id]);
        $this->idle($worker);
        ($this->ready)();
    }

    private function lastWords(WorkerHandle $worker, string $payload): void
    {
        /** @var array{peak: int, fatal: int} $words */
        $words = unpack('Ppeak/Cfatal', $payload);
        $worker->memoryPeak = max($worker->memoryPeak, $words['peak']);
        $worker->lastWords = substr($payload, 9);
    }

    private function disconnected(WorkerHandle $worker, ?string $wrong): void
    {
        if ($wrong !== null) {
            $worker->wrote("{$wrong}\n");
        }
        if ($worker->exit !== null) {
            return; // it is being buried
        }
        $this->context->disconnected($worker->id);
        $worker->timers[] = WeakTimer::after($wrong === null ? self::TELLING : 0.0, $this, static function (self $workers) use ($worker): void {
            $workers->context->end($worker->id);
        });
    }

    private function bury(WorkerHandle $worker): void
    {
        unset($this->workers[$worker->id]);
        $this->leaving -= $worker->retiring || $worker->ending !== null ? 1 : 0;
        $this->release($worker);
        [$exitCode, $signal] = $worker->exit ?? [null, null];
        $how = $signal === null ? 'exit code ' . ($exitCode ?? 'unknown') : "signal {$signal}";
        $this->log('Worker {id} has ended ({how})', ['id' => $worker->id, 'how' => $how]);
        $begun = $worker->tasks > 0;
        foreach ($worker->batches as $batch) {
            $begun = $begun || $worker->started($batch) > 0;
        }
        $failed = !$worker->ready || (!$begun && $worker->batches !== []);
        $this->vain = $failed ? $this->vain + 1 : 0;
        ($this->gone)($worker);
        if ($failed && ($worker->ending === null || $worker->startFailure !== null)) {
            $this->pausing ??= WeakTimer::after(self::PAUSE, $this, static function (self $workers): void {
                $workers->pausing = null;
                ($workers->ready)();
            });
            $others = array_filter($this->workers, static fn(WorkerHandle $other): bool => $other->ending === null && !$other->retiring);
            if ($others === [] && (!$worker->ready || $this->vain >= self::VAIN)) {
                EventLoop::cancel($this->pausing);
                $this->pausing = null;
                ($this->failed)($worker->startFailure ?? WorkerStartException::ended($worker->lastWords === '' ? "exit({$exitCode})" : ($worker->lastWords ?? $how), $worker->stderr));
            }
        }
        if (!$this->closed) {
            ($this->ready)(); // another one can be started
        } elseif ($this->workers === []) {
            $this->isEmpty();
        }
    }

    /** Nothing that belongs to it stays. */
    private function release(WorkerHandle $worker): void
    {
        array_map(EventLoop::cancel(...), $worker->timers);
        $worker->link?->close();
        if ($worker->mark === null) {
            Mark::take($worker->markKey); // it may have made it, and not come to say so
        }
    }

    private function stop(WorkerHandle $worker): void
    {
        if (!$worker->retiring) {
            $this->leaving += $worker->ending === null ? 1 : 0;
            $worker->retiring = true;
        }
        if ($worker->batches === [] && $worker->link !== null && !$worker->stopping) {
            $worker->stopping = true;
            $worker->link->send(Protocol::frame(Protocol::STOP, 0));
            $worker->timers[] = WeakTimer::after(self::FAREWELL, $this, static function (self $workers) use ($worker): void {
                $workers->context->end($worker->id); // what it does at its end takes too long
            });
        }
    }

    private function isDue(WorkerHandle $worker): bool
    {
        return ($this->options->maxTasks !== null && $worker->tasks >= $this->options->maxTasks)
            || ($this->options->maxAge !== null && microtime(true) - $worker->readyAt >= $this->options->maxAge)
            || ($this->options->maxGrowth !== null && $worker->memory - $worker->memoryAtFirst > $this->options->maxGrowth);
    }

    /** How many there are more than there should be. */
    private function surplus(): int
    {
        return \count($this->workers) - $this->leaving - $this->size;
    }

    private function stopIdle(): void
    {
        $this->idling = null;
        $now = microtime(true);
        $next = \INF;
        foreach ($this->workers as $worker) {
            if ($worker->isIdle()) {
                $left = $worker->idleSince + $this->options->idleTimeout - $now;
                $left <= 0.001 ? $this->stop($worker) : $next = min($next, $left);
            }
        }
        if (is_finite($next)) {
            $this->idling = WeakTimer::after($next, $this, static fn(self $workers) => $workers->stopIdle());
        }
    }

    private function isEmpty(): void
    {
        $empty = $this->empty;
        $this->empty = null;
        if ($empty !== null) {
            $empty();
        }
    }

    /** @param array<string, mixed> $context */
    private function log(string $message, array $context): void
    {
        $logger = $this->options->logger;
        if ($logger !== null) {
            Aside::call(static fn() => $logger->debug($message, $context));
        }
    }
}
