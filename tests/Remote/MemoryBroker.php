<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use Revolt\EventLoop;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\ClaimResult;
use Spindle\Remote\Durability;
use Spindle\Remote\JobStatus;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\SubmitResult;

/**
 * A connection to queues in memory: the simplest implementation of a broker's guarantees. Its methods never suspend.
 * Messages arrive in a later turn of the loop, in the order in which they were sent.
 */
final class MemoryBroker implements Broker
{
    private bool $isCut = false;

    /** @var array<int, array{string, \Closure(MailboxMessage): void, \Closure(bool): void}> its mailboxes */
    private array $mailboxes = [];

    /** @var array<int, int> ids of listeners in the engine, empty while the connection is cut */
    private array $listeners = [];

    private int $last = 0;

    public function __construct(private readonly MemoryEngine $engine) {}

    /** Cuts the connection, in both directions. */
    public function cut(): void
    {
        $this->isCut = true;
        foreach ($this->listeners as $box => $listener) {
            $this->engine->forget($this->mailboxes[$box][0], $listener);
        }
        $this->listeners = [];
    }

    public function restore(): void
    {
        $this->isCut = false;
        foreach (array_keys($this->mailboxes) as $box) {
            $this->open($box, true);
        }
    }

    public function durability(): Durability
    {
        return $this->isCut ? throw self::unavailable() : Durability::Durable;
    }

    public function maxFrameBytes(): int
    {
        return $this->isCut ? throw self::unavailable() : \PHP_INT_MAX;
    }

    public function submit(string $queue, array $jobs, int $maxJobs, string $mailbox, bool $checkIds): SubmitResult
    {
        return $this->queue($queue)->submit($jobs, $maxJobs, $mailbox);
    }

    public function attach(string $queue, array $ids, string $mailbox): array
    {
        return $this->queue($queue)->attach($ids, $mailbox);
    }

    public function cancel(string $queue, array $ids): array
    {
        return $this->queue($queue)->cancel($ids);
    }

    public function cancelAndRecord(string $queue, array $ids): array
    {
        return $this->queue($queue)->cancelAndRecord($ids);
    }

    public function cancelUnclaimed(string $queue, array $ids): array
    {
        return $this->queue($queue)->cancel($ids, false);
    }

    public function dropOutcomes(string $queue, array $ids): void
    {
        $this->queue($queue)->dropOutcomes($ids);
    }

    public function openMailbox(string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure
    {
        $box = ++$this->last;
        $this->mailboxes[$box] = [$mailbox, $onMessage, $onOpen];
        $this->open($box, false);

        return function () use ($box, $mailbox): void {
            if (isset($this->listeners[$box])) {
                $this->engine->forget($mailbox, $this->listeners[$box]);
            }
            unset($this->mailboxes[$box], $this->listeners[$box]);
        };
    }

    public function renewLease(
        string $queue,
        string $owner,
        float $lease,
        bool $isNew,
        string $description,
        int $maxDeadLetters = \PHP_INT_MAX,
        float $deadLetterRetention = \INF,
    ): ?float {
        return $this->queue($queue)->renew($owner, $lease, $isNew, $maxDeadLetters, $deadLetterRetention);
    }

    public function settleAndClaim(
        string $queue,
        string $owner,
        array $settlements,
        int $maxClaims,
        float $outcomeRetention,
        int $firstSequenceNumber = 0,
        ?int $lastStartableSequenceNumber = null,
        int $maxFrameBytes = \PHP_INT_MAX,
    ): ClaimResult {
        return $this->queue($queue)->settle(
            $owner,
            $settlements,
            $maxClaims,
            $outcomeRetention,
            $firstSequenceNumber,
            $lastStartableSequenceNumber,
            $maxFrameBytes,
        );
    }

    public function claimedJobs(
        string $queue,
        string $owner,
        array $known,
        int $maxFrameBytes = \PHP_INT_MAX,
    ): array {
        return $this->queue($queue)->claimedJobs($owner, $known, $maxFrameBytes);
    }

    public function putItems(
        string $queue,
        string $owner,
        string $id,
        int $claimNumber,
        int $offset,
        array $frames,
    ): ?int {
        return $this->queue($queue)->putItems($owner, $id, $claimNumber, $offset, $frames);
    }

    public function takeItems(string $queue, string $id, int $offset, int $limit): array
    {
        return $this->queue($queue)->takeItems($id, $offset, $limit);
    }

    public function stopTakingItems(string $queue, string $id): void
    {
        $this->queue($queue)->stopTakingItems($id);
    }

    public function report(string $queue, string $owner, string $id, int $claimNumber, string $frame): void
    {
        if (!$this->isCut) {
            $this->engine->queue($queue)->report($owner, $id, $claimNumber, $frame);
        }
    }

    public function queues(): array
    {
        return $this->isCut ? throw self::unavailable() : $this->engine->queueNames();
    }

    public function statistics(string $queue): array
    {
        return $this->queue($queue)->statistics();
    }

    public function listJobs(string $queue, JobStatus $status, int $limit, ?string $id = null): array
    {
        return $id === null ? $this->queue($queue)->list($status, $limit) : $this->queue($queue)->details($status, $id);
    }

    public function status(string $queue, string $id): ?JobStatus
    {
        return $this->queue($queue)->status($id);
    }

    public function retryDeadLetters(string $queue, array $ids): int
    {
        return $this->queue($queue)->retryDeadLetters($ids);
    }

    public function deleteDeadLetters(string $queue, array $ids): int
    {
        return $this->queue($queue)->delete($ids);
    }

    public function repair(string $queue): int
    {
        $this->queue($queue);

        return 0; // a queue in memory loses no jobs
    }

    public function releaseLease(string $queue, string $owner): void
    {
        $this->queue($queue)->leave($owner);
    }

    private function queue(string $name): MemoryQueue
    {
        return $this->isCut ? throw self::unavailable() : $this->engine->queue($name);
    }

    private function open(int $box, bool $mayHaveLostMessages): void
    {
        if ($this->isCut || isset($this->listeners[$box])) {
            return;
        }
        [$mailbox, $onMessage, $onOpen] = $this->mailboxes[$box];
        $this->listeners[$box] = $listener = $this->engine->listen($mailbox, $onMessage);
        EventLoop::queue(function () use ($box, $listener, $onOpen, $mayHaveLostMessages): void {
            if (($this->listeners[$box] ?? null) === $listener) {
                $onOpen($mayHaveLostMessages);
            }
        });
    }

    private static function unavailable(): BrokerUnavailableException
    {
        return BrokerUnavailableException::at('memory', 'it is cut off');
    }
}
