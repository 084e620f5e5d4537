<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\Future;
use Revolt\EventLoop;
use Spindle\Worker\Executor;
use Spindle\Worker\PortableOutcome;
use Spindle\Worker\PortableTask;
use Spindle\Worker\WorkerCrashedException;

/** Workers that wait for the duration of each task, and sometimes crash without doing it. */
final class SimulatedPool implements Executor
{
    /** @var array<int, array{PortableTask, DeferredFuture<mixed>}> */
    private array $waiting = [];

    /** @var array<int, array{string, string, DeferredFuture<mixed>}> timer, id and future of running tasks */
    private array $running = [];

    private int $last = 0;
    private bool $dead = false;

    public function __construct(private readonly World $world, private readonly int $workers) {}

    public function submit(callable $task, ?Cancellation $cancellation = null): Future
    {
        /** @var DeferredFuture<mixed> $deferred */
        $deferred = new DeferredFuture();
        if ($this->dead || !$task instanceof PortableTask) {
            return $deferred->getFuture();
        }
        $number = ++$this->last;
        $this->waiting[$number] = [$task, $deferred];
        $cancellation?->subscribe(fn(CancelledException $cancelled) => $this->cancel($number, $cancelled));
        $this->next();

        return $deferred->getFuture();
    }

    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        throw new \LogicException('An agent submits');
    }

    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        throw new \LogicException('An agent submits');
    }

    public function mapOutcomes(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        throw new \LogicException('An agent submits');
    }

    public function mapOutcomesUnordered(
        iterable $input,
        callable $task,
        ?Cancellation $cancellation = null,
    ): \Generator {
        throw new \LogicException('An agent submits');
    }

    /** Returns at once: an agent closes its pool when no task is running. */
    public function close(?Cancellation $cancellation = null): void
    {
        if ($this->running !== []) {
            throw new \LogicException('The agent has closed its pool while tasks are running');
        }
    }

    /** Ends all tasks without outcomes, like a machine that dies. */
    public function kill(): void
    {
        $this->dead = true;
        foreach ($this->running as [$timer, $id]) {
            EventLoop::cancel($timer);
            $this->world->stopped($id);
        }
        $this->running = $this->waiting = [];
    }

    private function next(): void
    {
        foreach ($this->waiting as $number => [$task, $deferred]) {
            if (\count($this->running) >= $this->workers) {
                return;
            }
            unset($this->waiting[$number]);
            [$id, $attempt] = (fn(): array => [(string) $this->idempotencyKey, $this->attempt])->call($task);
            $this->world->started($id);
            $timer = EventLoop::delay(
                $this->world->duration($id),
                fn() => $this->end($number, $id, $attempt, $deferred),
            );
            $this->running[$number] = [$timer, $id, $deferred];
        }
    }

    /** @param DeferredFuture<mixed> $deferred */
    private function end(int $number, string $id, int $attempt, DeferredFuture $deferred): void
    {
        unset($this->running[$number]);
        $this->world->stopped($id);
        match ($this->world->fate($id, $attempt)) {
            Fate::Crashes => $deferred->error(WorkerCrashedException::died(
                null,
                9,
                null,
                false,
                '',
                0,
                $attempt,
                null,
            )),
            Fate::Throws => $deferred->complete(PortableOutcome::threw(new \DomainException("{$id} fails"))),
            Fate::Returns => $deferred->complete(PortableOutcome::returned($id)),
        };
        $this->next();
    }

    private function cancel(int $number, CancelledException $cancelled): void
    {
        $deferred = $this->waiting[$number][1] ?? $this->running[$number][2] ?? null;
        if (isset($this->running[$number])) {
            [$timer, $id] = $this->running[$number];
            EventLoop::cancel($timer);
            $this->world->stopped($id);
        }
        unset($this->waiting[$number], $this->running[$number]);
        if ($deferred !== null) {
            $deferred->error($cancelled);
            $this->next();
        }
    }
}
