<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;

/** Holds the requested cancellations of one queue's jobs until the engine has answered the requests. */
final class JobCancellations
{
    private const MAX_JOBS_PER_REQUEST = 1000;

    /** @var array<string, bool> unsent cancellations by job id; false to cancel the job only if it is unclaimed */
    private array $unsent = [];

    /** @var array<string, array<int, bool>> sent cancellations by job id and request number; values as in $unsent */
    private array $sent = [];

    private int $requestCount = 0;

    private readonly FiberQueue $answered;

    public function __construct(private readonly Broker $broker, private readonly string $queue)
    {
        $this->answered = new FiberQueue();
    }

    /**
     * Adds cancellations to the next request, unless an unanswered request already has them. If that request fails, it
     * is repeated.
     *
     * @param list<string> $ids
     */
    public function add(array $ids, bool $evenIfClaimed): void
    {
        foreach ($ids as $id) {
            $unanswered = $this->sent[$id] ?? [];
            if (!\in_array(true, $unanswered, true) && ($evenIfClaimed || $unanswered === [])) {
                $this->unsent[$id] = $evenIfClaimed || ($this->unsent[$id] ?? false);
            }
        }
    }

    /**
     * Makes {@see send()} repeat unanswered cancellations, because the process ends before their answers arrive. A
     * request names its Lua script by a hash. If the engine does not have the script, the request has no effect. So the
     * repetition sends the script too.
     */
    public function repeatUnanswered(): void
    {
        foreach ($this->sent as $id => $requests) {
            foreach ($requests as $evenIfClaimed) {
                $this->unsent[$id] = $evenIfClaimed || ($this->unsent[$id] ?? false);
            }
        }
    }

    public function isPending(string $id): bool
    {
        return isset($this->unsent[$id]) || isset($this->sent[$id]);
    }

    public function hasUnsent(): bool
    {
        return $this->unsent !== [];
    }

    public function hasPending(): bool
    {
        return $this->unsent !== [] || $this->sent !== [];
    }

    /** @throws CancelledException */
    public function awaitAnswer(?Cancellation $cancellation): void
    {
        $this->answered->wait($cancellation);
    }

    /**
     * Sends the unsent cancellations. For each job, yields the id and a boolean: true if the engine has removed the job
     * or does not know it. Returns false if the engine is not available, otherwise true.
     *
     * @return \Generator<int, array{string, bool}, mixed, bool>
     */
    public function send(): \Generator
    {
        while ($this->unsent !== []) {
            $evenIfClaimed = reset($this->unsent);
            $ids = \array_slice(array_keys($this->unsent, $evenIfClaimed, true), 0, self::MAX_JOBS_PER_REQUEST);
            $number = ++$this->requestCount;
            foreach ($ids as $id) {
                unset($this->unsent[$id]);
                $this->sent[$id][$number] = $evenIfClaimed;
            }
            $removed = $this->sendBatch($ids, $evenIfClaimed);
            foreach ($ids as $id) {
                unset($this->sent[$id][$number]);
                if ($this->sent[$id] === []) {
                    unset($this->sent[$id]);
                }
            }
            $this->answered->wakeAll();
            if ($removed === null) {
                $this->add($ids, $evenIfClaimed);

                return false;
            }
            $isRemoved = array_fill_keys($removed, true);
            foreach ($ids as $id) {
                yield [$id, isset($isRemoved[$id])];
            }
        }

        return true;
    }

    /**
     * @param list<string> $ids
     *
     * @return list<string>|null ids of removed and unknown jobs; null when the engine is not available
     */
    private function sendBatch(array $ids, bool $evenIfClaimed): ?array
    {
        try {
            return $evenIfClaimed
                ? $this->broker->cancel($this->queue, $ids)
                : $this->broker->cancelUnclaimed($this->queue, $ids);
        } catch (BrokerUnavailableException) {
            return null;
        } catch (BrokerException) {
            return []; // The engine refuses the request. So the jobs continue, and their OutcomeReceivers get outcomes.
        }
    }
}
