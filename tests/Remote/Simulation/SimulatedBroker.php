<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Claim;
use Spindle\Remote\JobStatus;
use Spindle\Remote\SubmitResult;
use Spindle\Remote\Tier;
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

    public function tier(): Tier
    {
        return $this->ask(fn(): Tier => $this->broker->tier());
    }

    public function submit(string $queue, array $jobs, int $limit, string $mailbox, bool $maybeKnown): SubmitResult
    {
        return $this->ask(fn(): SubmitResult => $this->broker->submit($queue, $jobs, $limit, $mailbox, $maybeKnown));
    }

    public function look(string $queue, array $ids, string $mailbox): array
    {
        return $this->ask(fn(): array => $this->broker->look($queue, $ids, $mailbox));
    }

    public function forget(string $queue, array $ids): void
    {
        $this->ask(fn() => $this->broker->forget($queue, $ids));
    }

    public function withdraw(string $queue, array $ids): array
    {
        return $this->ask(fn(): array => $this->broker->withdraw($queue, $ids));
    }

    public function recall(string $queue, array $ids): array
    {
        return $this->ask(fn(): array => $this->broker->recall($queue, $ids));
    }

    public function openMailbox(string $mailbox, \Closure $letter, \Closure $open): \Closure
    {
        return $this->broker->openMailbox($mailbox, $letter, $open);
    }

    public function renew(
        string $queue,
        string $owner,
        float $lease,
        bool $joins,
        string $about,
        int $mostDead = \PHP_INT_MAX,
        float $oldestDead = \INF,
    ): ?float {
        return $this->ask(
            fn(): ?float => $this->broker->renew($queue, $owner, $lease, $joins, $about, $mostDead, $oldestDead),
        );
    }

    public function settle(
        string $queue,
        string $owner,
        array $settlements,
        int $want,
        float $retention,
        int $first = 0,
        ?int $begun = null,
    ): Claim {
        return $this->ask(
            fn(): Claim => $this->broker->settle($queue, $owner, $settlements, $want, $retention, $first, $begun),
        );
    }

    public function held(string $queue, string $owner, array $known): array
    {
        return $this->ask(fn(): array => $this->broker->held($queue, $owner, $known));
    }

    public function putItems(string $queue, string $owner, string $id, int $number, int $first, array $frames): ?int
    {
        return $this->ask(fn(): ?int => $this->broker->putItems($queue, $owner, $id, $number, $first, $frames));
    }

    public function takeItems(string $queue, string $id, int $from, int $most): array
    {
        return $this->ask(fn(): array => $this->broker->takeItems($queue, $id, $from, $most));
    }

    public function leaveItems(string $queue, string $id): void
    {
        $this->ask(fn() => $this->broker->leaveItems($queue, $id));
    }

    public function report(string $queue, string $owner, string $id, int $number, string $frame): void
    {
        $this->broker->report($queue, $owner, $id, $number, $frame);
    }

    public function figures(string $queue): array
    {
        return $this->ask(fn(): array => $this->broker->figures($queue));
    }

    public function list(string $queue, JobStatus $status, int $most): array
    {
        return $this->ask(fn(): array => $this->broker->list($queue, $status, $most));
    }

    public function status(string $queue, string $id): ?JobStatus
    {
        return $this->ask(fn(): ?JobStatus => $this->broker->status($queue, $id));
    }

    public function revive(string $queue, array $ids): int
    {
        return $this->ask(fn(): int => $this->broker->revive($queue, $ids));
    }

    public function delete(string $queue, array $ids): int
    {
        return $this->ask(fn(): int => $this->broker->delete($queue, $ids));
    }

    public function repair(string $queue): int
    {
        return $this->ask(fn(): int => $this->broker->repair($queue));
    }

    public function leave(string $queue, string $owner): void
    {
        $this->ask(fn() => $this->broker->leave($queue, $owner));
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
