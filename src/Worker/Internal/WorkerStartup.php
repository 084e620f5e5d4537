<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerStartException;

/** Starts workers. The id in the greeting of an incoming connection shows which worker has connected. */
final class WorkerStartup
{
    private ?WorkerListener $listener = null;

    /** @var array<int, WorkerHandle> started workers that have not connected yet, by id */
    private array $expected = [];

    /** @param float $timeout maximum seconds from the start of a worker until the worker is ready */
    public function __construct(
        private readonly Context $context,
        private readonly WorkerSettings $settings,
        private readonly float $timeout,
        private readonly WorkerEvents $events,
    ) {}

    /**
     * @param int $id a number that no other worker of the pool has had
     * @param int $siblings size of the pool; a pool that a task creates divides the usable CPUs by this number
     *
     * @throws WorkerStartException
     */
    public function start(int $id, WorkerGroup $group, int $siblings): WorkerHandle
    {
        $this->listener ??= $this->createListener();
        $worker = new WorkerHandle($id, SharedFlags::newKey(), $group);
        $this->context->start(
            $id,
            $this->settings->forWorker($this->listener, $id, $worker->sharedMemoryKey, $siblings),
        );
        $this->expected[$id] = $worker;
        $worker->timers[] = WeakTimer::after(
            $this->timeout,
            $this,
            static function (self $startup) use ($worker): void {
                if (!$worker->ready) {
                    $startup->events->failedToStart($worker, WorkerStartException::late(
                        $startup->timeout,
                        $startup->settings->startAdvice(),
                    ));
                }
            },
        );

        return $worker;
    }

    public function ended(string $how, string $stderr): WorkerStartException
    {
        return WorkerStartException::ended($how, $stderr, $this->settings->startAdvice());
    }

    public function forget(WorkerHandle $worker): void
    {
        unset($this->expected[$worker->id]);
    }

    public function close(): void
    {
        $this->listener?->close();
        $this->listener = null;
    }

    private function createListener(): WorkerListener
    {
        SharedFlags::removeStale();
        $weak = \WeakReference::create($this);

        $listener = new WorkerListener(
            static fn(WorkerLink $link, int $type, int $id, string $greeting)
                => $weak->get()?->onGreeted($link, $type, $id, $greeting),
            static fn(string $why) => $weak->get()?->failAll(WorkerStartException::impossible($why)),
        );
        $listener->onDestroyed = static fn() => $weak->get()?->events->partDestroyed();

        return $listener;
    }

    private function onGreeted(WorkerLink $link, int $type, int $id, string $greeting): void
    {
        $worker = $type === WorkerProtocol::HELLO ? $this->expected[$id] ?? null : null;
        if ($worker === null) {
            if (!$this->context->onConnected($link, $type, $greeting)) {
                $link->close();
            }

            return;
        }
        unset($this->expected[$id]);
        $worker->link = $link;
        /** @var array{pid: int, hasSharedMemory: int} $fields */
        $fields = unpack('Vpid/ChasSharedMemory', $greeting);
        $worker->pid = $fields['pid'];
        $worker->sharedFlags = $fields['hasSharedMemory'] === 1 ? SharedFlags::open($worker->sharedMemoryKey) : null;
        $isMemoryMissing = $fields['hasSharedMemory'] === 1 && $worker->sharedFlags === null;
        $events = $this->events;
        // Without the memory, the pool could not see which tasks a ready worker has started. So it disconnects a ready
        // worker. But a worker that failed to start has removed its memory, and the pool must receive the failure.
        $receive = static fn(int $type, int $number, string $bytes, int $at, int $length)
            => $isMemoryMissing && $type === WorkerProtocol::READY
                ? $worker->disconnect('The pool could not open the shared memory of the worker')
                : $events->received($worker, $type, $number, $bytes, $at, $length);
        $maxFrameBytes = $this->settings->maxResultBytes + WorkerProtocol::MAX_BESIDE_RESULT_BYTES;
        $link->listen($receive, $worker->disconnected(...), $maxFrameBytes, WorkerProtocol::MAGIC);
        $link->setBudget($this->settings->budget);
    }

    /** Fails the start of each worker that has not connected, because this process can accept no connection. */
    private function failAll(WorkerStartException $why): void
    {
        foreach ($this->expected as $worker) {
            $this->events->failedToStart($worker, $why);
        }
    }
}
