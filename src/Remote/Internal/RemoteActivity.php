<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Remote\Broker;
use Spindle\Worker\ExecutorClosedException;

/** Tracks the unfinished work and unanswered requests of a {@see QueueClient}. {@see close()} waits for their end. */
final class RemoteActivity
{
    /** @var array<int, OutcomeReceiver> by object id */
    private array $work = [];

    /** Broker of the unfinished work; null without such work, so that PHP can destroy the broker. */
    private ?Broker $broker = null;

    private int $requestCount = 0;

    /** Fibers that wait in {@see close()}; null before the first wait. */
    private ?FiberQueue $closing = null;

    public function __construct(private readonly ?MissingAgentWarning $missingAgents, private bool $isClosed = false) {}

    public function ofFork(): self
    {
        return new self($this->missingAgents?->ofFork(), $this->isClosed);
    }

    /** @throws ExecutorClosedException */
    public function mustBeOpen(): void
    {
        if ($this->isClosed) {
            throw ExecutorClosedException::closed();
        }
    }

    public function begin(OutcomeReceiver $work, ?Broker $broker): void
    {
        $this->work[spl_object_id($work)] = $work;
        $this->broker = $broker ?? $this->broker;
        $this->missingAgents?->start($this->broker, $this);
    }

    /**
     * Sends jobs as {@see request()} does. Also restarts the check for agents, which stops when a slow loop (foreach)
     * over map() has no pending job.
     *
     * @param \Closure(): int $request
     */
    public function send(\Closure $request): int
    {
        if ($this->work !== []) {
            $this->missingAgents?->start($this->broker, $this);
        }

        return $this->request($request);
    }

    public function awaitsOutcomes(): bool
    {
        return array_filter($this->work, static fn(OutcomeReceiver $work): bool => $work->awaitsOutcome()) !== [];
    }

    public function end(OutcomeReceiver $work): void
    {
        unset($this->work[spl_object_id($work)]);
        if ($this->work === []) {
            $this->broker = null;
            $this->missingAgents?->stop();
        }
        $this->wakeIfIdle();
    }

    /**
     * Calls $request and returns its result. {@see close()} waits for the end of the call.
     *
     * @template T
     *
     * @param \Closure(): T $request
     *
     * @return T
     */
    public function request(\Closure $request): mixed
    {
        ++$this->requestCount;
        try {
            return $request();
        } finally {
            --$this->requestCount;
            $this->wakeIfIdle();
        }
    }

    /** @param \Closure(): void $request called by {@see request()} in a later callback of the event loop */
    public function requestLater(\Closure $request): void
    {
        ++$this->requestCount;
        EventLoop::queue(function () use ($request): void {
            --$this->requestCount;
            $this->request($request);
        });
    }

    /**
     * Refuses new work, and waits until all work has outcomes and all requests are answered. If the wait is cancelled,
     * the accepted work continues, and new work is still refused.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation): void
    {
        $this->isClosed = true;
        foreach ($this->work as $work) {
            $work->close();
        }
        if (!$this->isIdle()) {
            $this->closing ??= new FiberQueue();
            $this->closing->wait($cancellation);
        }
    }

    /** Refuses new work. Ends all unfinished work with $reason as its outcome. Ends the wait of {@see close()}. */
    public function kill(ExecutorClosedException $reason): void
    {
        $this->isClosed = true;
        foreach ($this->work as $work) {
            $work->kill($reason);
        }
        $this->work = [];
        $this->broker = null;
        $this->missingAgents?->stop();
        $this->closing?->wakeAll();
    }

    private function isIdle(): bool
    {
        return $this->work === [] && $this->requestCount === 0;
    }

    private function wakeIfIdle(): void
    {
        if ($this->isIdle()) {
            $this->closing?->wakeAll();
        }
    }
}
