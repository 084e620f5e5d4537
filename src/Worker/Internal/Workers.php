<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\IsolatedCall;
use Spindle\Internal\WeakTimer;
use Spindle\LauncherException;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/** Manages the workers of a pool: starts them when there is work, replaces them when due, ends them. */
final class Workers
{
    private readonly WorkerShutdown $departures;

    /** Group that starts workers with the present credentials of this process. */
    private WorkerGroup $crew;

    /** @var array<int, WorkerGroup> with former credentials, by object id; each is closed with its last worker */
    private array $retired = [];

    private readonly WorkerLifetime $lifespan;
    private readonly StartBackoff $setbacks;

    /** @var array<int, WorkerHandle> workers by number */
    private array $workers = [];
    private int $lastId = 0;
    private ?string $idling = null;
    private bool $closed = false;

    /** @var \Closure(): void|null called when the last worker has ended */
    private ?\Closure $empty = null;

    /**
     * @param int $size maximum number of workers for later starts; may be changed
     * @param \Closure(ContextEvents): Context $context
     * @param \Closure(): void $ready called when another worker can be given tasks
     * @param \Closure(WorkerHandle, int, int, string, int, int): void $frame receives each frame: type, id, then bytes
     *         that contain the payload, its offset and length
     * @param \Closure(WorkerHandle): void $gone called when a worker has ended and all its frames were received
     * @param \Closure(WorkerStartException): void $failed called when there is no worker and none can be started
     */
    public function __construct(
        public int $size,
        private readonly WorkerPoolOptions $options,
        private readonly WorkerSettings $settings,
        private readonly \Closure $context,
        private readonly \Closure $ready,
        private readonly \Closure $frame,
        private readonly \Closure $gone,
        private readonly \Closure $failed,
    ) {
        $this->departures = new WorkerShutdown();
        $this->lifespan = new WorkerLifetime($options);
        $this->setbacks = new StartBackoff($ready);
        $this->crew = $this->newCrew();
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

    /**
     * Returns whether existing workers must get no new tasks, because this process has another user or group.
     *
     * The comparison runs for every task, so it is fast, and may find some changes only a millisecond later.
     */
    public function hasOtherUser(): bool
    {
        return $this->crew->hasOtherUser();
    }

    /**
     * Returns whether the workers still run as root after this process has given up some of root's credentials. For
     * any other user, {@see hasOtherUser()} is sufficient.
     */
    public function mustNotServe(): bool
    {
        return $this->crew->isOfRoot() && $this->crew->hasOtherUser();
    }

    /** Returns whether the credentials of this process differ from those of its workers. */
    public function areOutdated(): bool
    {
        return $this->crew->isOutdated();
    }

    /** Returns whether the workers run as root, so that their tasks may move to workers of any other user. */
    public function areOfRoot(): bool
    {
        return $this->crew->isOfRoot();
    }

    /** Stops all workers when they have nothing to do. The next ones start with the present credentials. */
    public function renew(): void
    {
        $former = $this->crew;
        $this->crew = $this->newCrew();
        $this->setbacks->endPause();
        $this->log('The credentials of this process have changed: its workers are replaced', []);
        if ($former->workers === []) {
            $former->close();

            return;
        }
        $this->retired[spl_object_id($former)] = $former;
        foreach ($former->workers as $worker) {
            if ($worker->ready) {
                $this->departures->stop($worker);
            } else {
                $this->departures->end($worker, static fn(): \Throwable => WorkerStartException::otherCredentials());
            }
        }
    }

    /** Returns how many more workers to start for `$demand` batches, up to the pool's size. */
    public function missingFor(int $demand): int
    {
        if ($demand < 1 || $this->closed || $this->setbacks->isPausing()) {
            return 0;
        }
        $room = $this->size;
        foreach ($this->workers as $worker) {
            if (!$worker->isLeaving()) {
                --$room;
                $demand -= $worker->ready ? 0 : 1;
            }
        }

        return max(0, min($room, $demand));
    }

    public function start(int $count): void
    {
        try {
            for (; $count > 0; --$count) {
                $this->startOne();
            }
        } catch (LauncherException|WorkerStartException $failure) {
            $failure = $failure instanceof WorkerStartException
                ? $failure
                : WorkerStartException::impossible($failure->getMessage(), $failure);
            $this->hasOthers() ? $this->setbacks->pause() : ($this->failed)($failure);
        }
    }

    /** @param \Closure(Batch, int): \Throwable $reason failure of the running task */
    public function end(WorkerHandle $worker, \Closure $reason): void
    {
        $this->departures->end($worker, $reason);
    }

    /** Ends a worker that sent impossible results, and ignores further frames. */
    public function distrust(WorkerHandle $worker): void
    {
        $worker->link?->close();
        $this->departures->disconnected($worker, 'It sent results of tasks that it does not have');
    }

    /** Called when a worker has nothing to do: stops it if it must be replaced, otherwise starts its idle time. */
    public function idle(WorkerHandle $worker): void
    {
        $worker->idleSince = hrtime(true);
        if ($worker->tasks > 0) {
            $this->setbacks->areOver();
        }
        if ($worker->retiring || $this->lifespan->isOver($worker) || $this->surplus() > 0) {
            $this->departures->stop($worker);
        } elseif ($this->idling === null && is_finite($this->options->idleTimeout)) {
            $this->idling = WeakTimer::after(
                $this->options->idleTimeout,
                $this,
                static fn(self $workers) => $workers->stopIdle(),
            );
        }
    }

    public function allowance(WorkerHandle $worker): int
    {
        if (!$worker->ready || $worker->isLeaving()) {
            return 0;
        }
        $left = $this->lifespan->tasksLeft($worker);
        if ($left === 0 && $worker->batches === []) {
            $this->departures->stop($worker);
        }

        return $left;
    }

    public function shrink(): void
    {
        foreach ($this->workers as $worker) {
            if ($this->surplus() < 1) {
                return;
            }
            if ($worker->isIdle()) {
                $this->departures->stop($worker);
            }
        }
    }

    /** @param \Closure(): void $empty called when all workers have ended, or have had enough time to */
    public function stopAll(\Closure $empty): void
    {
        $this->closed = true;
        $timer = EventLoop::delay(WorkerShutdown::FAREWELL, $this->isEmpty(...));
        $this->empty = static function () use ($timer, $empty): void {
            EventLoop::cancel($timer);
            $empty();
        };
        foreach ($this->workers as $worker) {
            $this->departures->stop($worker);
        }
        if ($this->workers === []) {
            $this->isEmpty();
        }
    }

    /** Ends all workers, and returns when they have ended. */
    public function close(): void
    {
        $this->closed = true;
        $this->setbacks->endPause();
        if ($this->idling !== null) {
            EventLoop::cancel($this->idling);
        }
        $workers = $this->workers;
        $this->workers = [];
        foreach ($workers as $worker) {
            $worker->link?->close(); // makes the worker end by itself
        }
        foreach ([$this->crew, ...$this->retired] as $crew) {
            $crew->workers = [];
            $crew->close(); // also closes connections that wait to be accepted
        }
        $this->retired = [];
        foreach ($workers as $worker) {
            $this->release($worker); // last: ended workers can create no more shared memory
        }
    }

    /** @throws LauncherException|WorkerStartException */
    private function startOne(): void
    {
        $worker = $this->crew->arrivals->start(++$this->lastId, $this->crew, $this->size);
        $this->workers[$worker->id] = $this->crew->workers[$worker->id] = $worker;
        $this->log('Worker {id} is started', ['id' => $worker->id]);
    }

    private function newCrew(): WorkerGroup
    {
        $arrivals = fn(WorkerGroup $crew): WorkerStartup => new WorkerStartup(
            $crew->context,
            $this->settings,
            $this->options->startTimeout,
            $this->heard(...),
            $this->departures->disconnected(...),
            $this->giveUp(...),
        );

        return new WorkerGroup($this->context, $arrivals, $this->ended(...), $this->printed(...));
    }

    private function ended(WorkerHandle $worker): void
    {
        $worker->link?->drain();
        $this->bury($worker);
    }

    private function printed(string $bytes, bool $isError): void
    {
        $onOutput = $this->options->onOutput;
        if ($onOutput !== null) {
            IsolatedCall::call(static fn() => $onOutput($bytes, $isError));
        } elseif (!$isError) {
            echo $bytes;
        } elseif (\defined('STDERR')) {
            @fwrite(\STDERR, $bytes);
        } else {
            error_log($bytes);
        }
    }

    private function giveUp(WorkerHandle $worker, WorkerStartException $why): void
    {
        $worker->startFailure = $why;
        $this->departures->end($worker, static fn(): \Throwable => $why);
    }

    private function heard(WorkerHandle $worker, int $type, int $id, string $bytes, int $at, int $length): void
    {
        match ($type) {
            WorkerProtocol::READY => $this->isReady($worker, substr($bytes, $at, $length)),
            WorkerProtocol::NOT_READY => $worker->startFailure = TaskOutcome::startFailure(substr(
                $bytes,
                $at,
                $length,
            )),
            WorkerProtocol::OUTPUT => $this->printed(substr($bytes, $at, $length), false),
            WorkerProtocol::LAST_WORDS => $worker->spoke(substr($bytes, $at, $length)),
            default => ($this->frame)($worker, $type, $id, $bytes, $at, $length),
        };
    }

    private function isReady(WorkerHandle $worker, string $payload): void
    {
        $worker->isMadeReady($payload);
        $this->setbacks->oneIsReady();
        $this->log('Worker {id} is ready', ['id' => $worker->id]);
        $this->idle($worker);
        ($this->ready)();
    }

    private function bury(WorkerHandle $worker): void
    {
        unset($this->workers[$worker->id], $worker->crew->workers[$worker->id]);
        $this->release($worker);
        $this->log('Worker {id} has ended ({how})', ['id' => $worker->id, 'how' => $worker->end()]);
        $vain = !$worker->ready || ($worker->batches !== [] && !$worker->hasBegun());
        ($this->gone)($worker);
        $this->dismissCrew($worker->crew);
        if (!$vain) {
            $this->setbacks->areOver();
        } elseif ($worker->ending === null || $worker->startFailure !== null) {
            $this->cameToNothing($worker);
        }
        if (!$this->closed) {
            ($this->ready)(); // another worker can be started
        } elseif ($this->workers === []) {
            $this->isEmpty();
        }
    }

    /**
     * Handles a worker that ended before it began any task.
     *
     * If it was the last worker, and another one would fail in the same way, the waiting tasks fail. They also fail
     * when more consecutive workers than the pool's size did not become ready. Otherwise tasks could wait forever for
     * slow starts that fail one after the other.
     */
    private function cameToNothing(WorkerHandle $worker): void
    {
        $this->setbacks->pause();
        $startsFail = !$worker->ready && !$worker->wasKilled() && $this->setbacks->startFailed($this->size);
        if ($startsFail ? $this->hasReady() : $this->hasOthers()) {
            return;
        }
        $this->setbacks->endPause();
        if ($this->crew !== $worker->crew || $this->crew->isOutdated()) {
            return; // the next worker has other credentials
        }
        $mayBeChance = $worker->ready || $worker->wasKilled();
        if (!$mayBeChance || !$this->setbacks->mayTryAgain()) {
            ($this->failed)($worker->failure());
        }
    }

    /** Closes a group with former credentials once it has no workers. */
    private function dismissCrew(WorkerGroup $crew): void
    {
        if ($crew->workers === [] && isset($this->retired[spl_object_id($crew)])) {
            unset($this->retired[spl_object_id($crew)]);
            $crew->close();
        }
    }

    /** Returns whether any worker may be given tasks, now or soon. */
    private function hasOthers(): bool
    {
        return \count($this->workers) > $this->departures->count();
    }

    /** Returns whether any worker may be given tasks now. */
    private function hasReady(): bool
    {
        foreach ($this->workers as $worker) {
            if ($worker->ready && !$worker->isLeaving()) {
                return true;
            }
        }

        return false;
    }

    /** Releases everything that belongs to a worker that has ended. */
    private function release(WorkerHandle $worker): void
    {
        $worker->crew->arrivals->forget($worker);
        $this->departures->forget($worker);
        array_map(EventLoop::cancel(...), $worker->timers);
        $worker->link?->close();
        if ($worker->mark === null) {
            SharedFlags::take($worker->markKey); // the worker may have created the memory without reporting it
        }
    }

    /** Returns by how much the number of workers exceeds the pool's size; negative if there are fewer. */
    private function surplus(): int
    {
        return \count($this->workers) - $this->departures->count() - $this->size;
    }

    private function stopIdle(): void
    {
        $this->idling = null;
        $next = \INF;
        foreach ($this->workers as $worker) {
            if ($worker->isIdle()) {
                $left = $this->lifespan->idleLeft($worker);
                $left <= 0.001 ? $this->departures->stop($worker) : $next = min($next, $left);
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
            IsolatedCall::call(static fn() => $logger->debug($message, $context));
        }
    }
}
