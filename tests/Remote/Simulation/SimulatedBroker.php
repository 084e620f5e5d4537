<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\ClaimResult;
use Spindle\Remote\Durability;
use Spindle\Remote\JobStatus;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;

use function Amp\delay;

/** A simulated connection to the engine that takes time, loses answers, can be cut, and can delay requests. */
final class SimulatedBroker implements Broker
{
    /** Fraction of the answers that are lost. */
    private const LOST = 0.02;

    private readonly MemoryBroker $broker;
    private float $pausedUntil = 0.0;
    private bool $killed = false;
    private bool $reliable = false;

    /** @param \Closure(): float $clock */
    public function __construct(MemoryEngine $engine, private readonly World $world, private readonly \Closure $clock)
    {
        $this->broker = new MemoryBroker($engine);
    }

    public function kill(): void
    {
        $this->killed = true;
        $this->broker->cut();
    }

    public function cut(): void
    {
        $this->broker->cut();
    }

    public function restore(): void
    {
        if (!$this->killed) {
            $this->broker->restore();
        }
    }

    /** Delays all requests for N seconds. */
    public function pause(float $seconds): void
    {
        $this->pausedUntil = ($this->clock)() + $seconds;
    }

    /** Stops losing answers. */
    public function calmDown(): void
    {
        $this->reliable = true;
    }

    public function durability(): Durability
    {
        return $this->ask(fn(): Durability => $this->broker->durability());
    }

    public function maxFrameBytes(): int
    {
        return $this->ask(fn(): int => $this->broker->maxFrameBytes());
    }

    public function submit(string $queue, array $jobs, int $maxJobs, string $mailbox, bool $checkIds): SubmitResult
    {
        return $this->ask(fn(): SubmitResult => $this->broker->submit($queue, $jobs, $maxJobs, $mailbox, $checkIds));
    }

    public function attach(string $queue, array $ids, string $mailbox): array
    {
        return $this->ask(fn(): array => $this->broker->attach($queue, $ids, $mailbox));
    }

    public function dropOutcomes(string $queue, array $ids): void
    {
        $this->ask(fn() => $this->broker->dropOutcomes($queue, $ids));
    }

    public function cancel(string $queue, array $ids): array
    {
        return $this->ask(fn(): array => $this->broker->cancel($queue, $ids));
    }

    public function cancelAndRecord(string $queue, array $ids): array
    {
        return $this->ask(fn(): array => $this->broker->cancelAndRecord($queue, $ids));
    }

    public function cancelUnclaimed(string $queue, array $ids): array
    {
        return $this->ask(fn(): array => $this->broker->cancelUnclaimed($queue, $ids));
    }

    public function openMailbox(string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure
    {
        return $this->broker->openMailbox($mailbox, $onMessage, $onOpen);
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
        return $this->ask(
            fn(): ?float
                => $this->broker->renewLease(
                    $queue,
                    $owner,
                    $lease,
                    $isNew,
                    $description,
                    $maxDeadLetters,
                    $deadLetterRetention,
                ),
        );
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
        return $this->ask(
            fn(): ClaimResult => $this->broker->settleAndClaim(
                $queue,
                $owner,
                $settlements,
                $maxClaims,
                $outcomeRetention,
                $firstSequenceNumber,
                $lastStartableSequenceNumber,
                $maxFrameBytes,
            ),
        );
    }

    public function claimedJobs(
        string $queue,
        string $owner,
        array $known,
        int $maxFrameBytes = \PHP_INT_MAX,
    ): array {
        return $this->ask(fn(): array => $this->broker->claimedJobs($queue, $owner, $known, $maxFrameBytes));
    }

    public function putItems(
        string $queue,
        string $owner,
        string $id,
        int $claimNumber,
        int $offset,
        array $frames,
    ): ?int {
        return $this->ask(fn(): ?int => $this->broker->putItems($queue, $owner, $id, $claimNumber, $offset, $frames));
    }

    public function takeItems(string $queue, string $id, int $offset, int $limit): array
    {
        return $this->ask(fn(): array => $this->broker->takeItems($queue, $id, $offset, $limit));
    }

    public function stopTakingItems(string $queue, string $id): void
    {
        $this->ask(fn() => $this->broker->stopTakingItems($queue, $id));
    }

    public function report(string $queue, string $owner, string $id, int $claimNumber, string $frame): void
    {
        $this->broker->report($queue, $owner, $id, $claimNumber, $frame);
    }

    public function queues(): array
    {
        return $this->ask(fn(): array => $this->broker->queues());
    }

    public function statistics(string $queue): array
    {
        return $this->ask(fn(): array => $this->broker->statistics($queue));
    }

    public function listJobs(string $queue, JobStatus $status, int $limit, ?string $id = null): array
    {
        return $this->ask(fn(): array => $this->broker->listJobs($queue, $status, $limit, $id));
    }

    public function status(string $queue, string $id): ?JobStatus
    {
        return $this->ask(fn(): ?JobStatus => $this->broker->status($queue, $id));
    }

    public function retryDeadLetters(string $queue, array $ids): int
    {
        return $this->ask(fn(): int => $this->broker->retryDeadLetters($queue, $ids));
    }

    public function deleteDeadLetters(string $queue, array $ids): int
    {
        return $this->ask(fn(): int => $this->broker->deleteDeadLetters($queue, $ids));
    }

    public function repair(string $queue): int
    {
        return $this->ask(fn(): int => $this->broker->repair($queue));
    }

    public function releaseLease(string $queue, string $owner): void
    {
        $this->ask(fn() => $this->broker->releaseLease($queue, $owner));
    }

    /**
     * @template T
     *
     * @param \Closure(): T $question
     *
     * @return T
     */
    private function ask(\Closure $question): mixed
    {
        delay(max(0.0001 + 0.0009 * $this->world->chance(), $this->pausedUntil - ($this->clock)()));
        if ($this->killed) {
            throw new KilledException('It was killed');
        }
        $answer = $question();
        if (!$this->reliable && $this->world->chance() < self::LOST) {
            throw BrokerUnavailableException::at('the simulation', 'the answer was lost');
        }

        return $answer;
    }
}
