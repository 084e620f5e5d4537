<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CompositeCancellation;
use Amp\Future;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;

use function Amp\async;

/**
 * Asks the engine (the server of the broker) to drop data that this process no longer needs: outcomes that have arrived
 * or are no longer awaited, and stored items of generator tasks. One request drops many outcomes. If the engine is not
 * available, repeats a request as long as this object exists. When the process ends, {@see ProcessEnd} sends the rest.
 */
final class ReceivedOutcomes implements LastRequests
{
    /** Numbers of outcomes, and of their bytes, at which the request to drop the outcomes is sent immediately. */
    private const SEND_AT_COUNT = 500;
    private const SEND_AT_BYTES = 4 << 20;

    private const DELAY_SECONDS = 0.5;

    private const MAX_JOBS_PER_REQUEST = 1000;

    /** Id of the process that created this object. A fork of that process must not send requests. */
    private readonly int $ownerPid;

    /** @var list<string> ids of the jobs whose outcomes the next request drops */
    private array $ids = [];
    private int $bytes = 0;

    private ?string $timer = null;

    /** @var list<string> ids of generator tasks for which the engine did not answer {@see stopTakingItems()} */
    private array $unstopped = [];

    /** @var array<int, \Closure(): void> requests that have not been sent, by number */
    private array $unsent = [];

    /** @var Future<void>|null newest request; ends after all earlier ones, because the engine answers in order */
    private ?Future $request = null;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly JobOutbox $outbox,
    ) {
        $this->ownerPid = (int) getmypid();
        ProcessEnd::register($this);
    }

    public function add(string $id, int $bytes): void
    {
        $this->ids[] = $id;
        $this->bytes += $bytes;
        // The timer keeps this object in memory until the request, but does not keep the event loop running.
        $this->timer ??= EventLoop::unreference(EventLoop::delay(self::DELAY_SECONDS, $this->dropAll(...)));
        // dropAll() keeps ids of jobs whose submission is pending, and starts a timer for them. With >= instead of ===,
        // each add() would call dropAll() while SEND_AT_COUNT ids are kept.
        if (\count($this->ids) === self::SEND_AT_COUNT || $this->bytes >= self::SEND_AT_BYTES) {
            $this->dropAll();
        }
    }

    /** Tells the engine soon that this process takes no more items: {@see Broker::stopTakingItems()}. */
    public function stopTakingItems(string $id): void
    {
        $this->sendSoon(function () use ($id): void {
            try {
                $this->broker->stopTakingItems($this->queue, $id);
            } catch (BrokerUnavailableException) {
                $this->unstopped[] = $id; // the task could occupy its worker until AgentOptions::$outcomeRetention
                $this->repeatSoon();
            }
        });
    }

    /**
     * Sends all requests, and waits up to $timeout seconds for their end. Does not wait if PHP can't suspend the
     * caller.
     *
     * Cancellation: ends the wait, and throws no exception.
     */
    public function awaitDropped(float $timeout, ?Cancellation $cancellation): void
    {
        $this->dropAll();
        if ($this->request !== null) {
            $timeLimit = new TimeoutCancellation($timeout);
            $end = $cancellation === null ? $timeLimit : new CompositeCancellation($timeLimit, $cancellation);
            FiberSwitch::awaitIfPossible($this->request, $end);
        }
    }

    private function dropAll(): void
    {
        [$unstopped, $this->unstopped] = [$this->unstopped, []];
        array_map($this->stopTakingItems(...), $unstopped);
        foreach (array_chunk($this->takeIds(), self::MAX_JOBS_PER_REQUEST) as $ids) {
            $this->sendSoon(fn() => $this->drop($ids));
        }
    }

    /** @return list<string> */
    private function takeIds(): array
    {
        EventLoop::cancel($this->timer ?? '');
        [$ids, $this->ids, $this->bytes, $this->timer] = [$this->ids, [], 0, null];
        $taken = [];
        foreach ($ids as $id) {
            // The outbox may submit a pending job again. Without the outcome, the engine would accept it as a new job.
            $this->outbox->isPending($id) ? $this->addAgain($id) : $taken[] = $id;
        }

        return $taken;
    }

    private function addAgain(string $id): void
    {
        $this->ids[] = $id;
        $this->repeatSoon();
    }

    private function repeatSoon(): void
    {
        $this->timer ??= WeakTimer::after(
            self::DELAY_SECONDS,
            $this,
            static fn(self $outcomes) => $outcomes->dropAll(),
        );
    }

    /** @param list<string> $ids */
    private function drop(array $ids): void
    {
        try {
            $this->broker->dropOutcomes($this->queue, $ids);
        } catch (BrokerUnavailableException) {
            foreach ($ids as $id) {
                $this->addAgain($id);
            }
        }
    }

    /** @param \Closure(): void $request */
    private function sendSoon(\Closure $request): void
    {
        $this->unsent[] = $request;
        $key = array_key_last($this->unsent);
        $this->request = async(fn() => $this->send($key));
    }

    private function send(int $key): void
    {
        $request = $this->unsent[$key] ?? null;
        unset($this->unsent[$key]);
        if ($request === null || $this->ownerPid !== getmypid()) {
            return;
        }
        try {
            $request();
        } catch (BrokerException) {
            // The engine drops the outcomes or items when their retention ends.
        }
    }

    public function noteCancellations(): void {}

    public function lastRequests(): array
    {
        $this->dropAll();

        return array_map(fn(int $key): \Closure => fn() => $this->send($key), array_keys($this->unsent));
    }
}
