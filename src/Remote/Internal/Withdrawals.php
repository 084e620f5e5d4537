<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;

/** Withdrawals of jobs that the engine has not confirmed. */
final class Withdrawals
{
    private const MAX_JOBS_PER_REQUEST = 1000;

    /** @var array<string, array<string, bool>> unsent ones by queue and id; true to end a claimed job as well */
    private array $unsent = [];

    /** @var array<string, array<string, mixed>> keys: ids of those that are sent and not answered, by queue */
    private array $sent = [];

    /** Fibers that wait for an answer. */
    private readonly FiberQueue $answered;

    public function __construct(private readonly Broker $broker)
    {
        $this->answered = new FiberQueue();
    }

    /** @param list<string> $ids */
    public function add(string $queue, array $ids, bool $claimed): void
    {
        foreach ($ids as $id) {
            $this->unsent[$queue][$id] = $claimed || ($this->unsent[$queue][$id] ?? false);
        }
    }

    /** Drops an unsent withdrawal, which would otherwise remove a new job with the same id. */
    public function drop(string $queue, string $id): void
    {
        unset($this->unsent[$queue][$id]);
    }

    public function isPending(string $queue, string $id): bool
    {
        return isset($this->unsent[$queue][$id]) || isset($this->sent[$queue][$id]);
    }

    public function hasUnsent(string $queue): bool
    {
        return ($this->unsent[$queue] ?? []) !== [];
    }

    public function hasPending(string $queue): bool
    {
        return $this->hasUnsent($queue) || ($this->sent[$queue] ?? []) !== [];
    }

    /** @throws CancelledException */
    public function awaitAnswer(?Cancellation $cancellation): void
    {
        $this->answered->wait($cancellation);
    }

    /**
     * Sends the unsent withdrawals, and yields the ids of removed and unknown jobs by queue. Returns false when the
     * engine is not available.
     *
     * @return \Generator<string, list<string>, mixed, bool>
     */
    public function send(): \Generator
    {
        while (($batch = $this->takeBatch()) !== null) {
            [$queue, $ids, $claimed] = $batch;
            $removed = $this->sendBatch($queue, $ids, $claimed);
            $this->sent[$queue] = array_diff_key($this->sent[$queue], array_flip($ids));
            $this->answered->wakeAll();
            if ($removed === null) {
                $this->add($queue, $ids, $claimed);

                return false;
            }
            yield $queue => $removed;
        }

        return true;
    }

    /**
     * Returns withdrawals for one request, which now count as sent.
     *
     * @return array{string, list<string>, bool}|null queue, ids, and whether to end claimed jobs as well
     */
    private function takeBatch(): ?array
    {
        foreach ($this->unsent as $queue => $ids) {
            if ($ids === []) {
                continue;
            }
            $claimed = reset($ids);
            $batch = \array_slice(array_keys($ids, $claimed, true), 0, self::MAX_JOBS_PER_REQUEST);
            $keys = array_flip($batch);
            $this->unsent[$queue] = array_diff_key($ids, $keys);
            $this->sent[$queue] = ($this->sent[$queue] ?? []) + $keys;

            return [$queue, $batch, $claimed];
        }

        return null;
    }

    /**
     * @param list<string> $ids
     *
     * @return list<string>|null ids of removed and unknown jobs; null when the engine is not available
     */
    private function sendBatch(string $queue, array $ids, bool $claimed): ?array
    {
        try {
            return $claimed
                ? $this->broker->withdraw($queue, $ids)
                : $this->broker->withdrawUnclaimed($queue, $ids);
        } catch (BrokerUnavailableException) {
            return null;
        } catch (BrokerException) {
            return []; // The jobs continue, and their waiters receive the outcomes.
        }
    }
}
