<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use Revolt\EventLoop;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Claim;
use Spindle\Remote\JobStatus;
use Spindle\Remote\Letter;
use Spindle\Remote\SubmitResult;
use Spindle\Remote\Tier;

/**
 * A connection to queues in memory: the simplest implementation of a broker's guarantees. Its methods never suspend.
 * Letters arrive in a later turn of the loop, in the order in which they were sent.
 */
final class MemoryBroker implements Broker
{
    private bool $isCut = false;

    /** @var array<int, array{string, \Closure(Letter): void, \Closure(): void}> its mailboxes */
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
        array_map($this->open(...), array_keys($this->mailboxes));
    }

    public function tier(): Tier
    {
        return $this->isCut ? throw self::unavailable() : Tier::Durable;
    }

    public function submit(string $queue, array $jobs, int $limit, string $mailbox, bool $maybeKnown): SubmitResult
    {
        return $this->queue($queue)->submit($jobs, $limit, $mailbox);
    }

    public function look(string $queue, array $ids, string $mailbox): array
    {
        return $this->queue($queue)->look($ids, $mailbox);
    }

    public function withdraw(string $queue, array $ids): array
    {
        return $this->queue($queue)->withdraw($ids);
    }

    public function recall(string $queue, array $ids): array
    {
        return $this->queue($queue)->withdraw($ids, false);
    }

    public function forget(string $queue, array $ids): void
    {
        $this->queue($queue)->forget($ids);
    }

    public function openMailbox(string $mailbox, \Closure $letter, \Closure $open): \Closure
    {
        $box = ++$this->last;
        $this->mailboxes[$box] = [$mailbox, $letter, $open];
        $this->open($box);

        return function () use ($box, $mailbox): void {
            if (isset($this->listeners[$box])) {
                $this->engine->forget($mailbox, $this->listeners[$box]);
            }
            unset($this->mailboxes[$box], $this->listeners[$box]);
        };
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
        return $this->queue($queue)->renew($owner, $lease, $joins, $mostDead, $oldestDead);
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
        return $this->queue($queue)->settle($owner, $settlements, $want, $retention, $first, $begun);
    }

    public function held(string $queue, string $owner, array $known): array
    {
        return $this->queue($queue)->held($owner, $known);
    }

    public function putItems(string $queue, string $owner, string $id, int $number, int $first, array $frames): ?int
    {
        return $this->queue($queue)->putItems($owner, $id, $number, $first, $frames);
    }

    public function takeItems(string $queue, string $id, int $from, int $most): array
    {
        return $this->queue($queue)->takeItems($id, $from, $most);
    }

    public function leaveItems(string $queue, string $id): void
    {
        $this->queue($queue)->leaveItems($id);
    }

    public function report(string $queue, string $owner, string $id, int $number, string $frame): void
    {
        if (!$this->isCut) {
            $this->engine->queue($queue)->report($owner, $id, $number, $frame);
        }
    }

    public function figures(string $queue): array
    {
        return $this->queue($queue)->figures();
    }

    public function list(string $queue, JobStatus $status, int $most): array
    {
        return $this->queue($queue)->list($status, $most);
    }

    public function status(string $queue, string $id): ?JobStatus
    {
        return $this->queue($queue)->status($id);
    }

    public function revive(string $queue, array $ids): int
    {
        return $this->queue($queue)->revive($ids);
    }

    public function delete(string $queue, array $ids): int
    {
        return $this->queue($queue)->delete($ids);
    }

    public function repair(string $queue): int
    {
        $this->queue($queue);

        return 0; // a queue in memory loses no jobs
    }

    public function leave(string $queue, string $owner): void
    {
        $this->queue($queue)->leave($owner);
    }

    private function queue(string $name): MemoryQueue
    {
        return $this->isCut ? throw self::unavailable() : $this->engine->queue($name);
    }

    private function open(int $box): void
    {
        if ($this->isCut || isset($this->listeners[$box])) {
            return;
        }
        [$mailbox, $letter, $open] = $this->mailboxes[$box];
        $this->listeners[$box] = $listener = $this->engine->listen($mailbox, $letter);
        EventLoop::queue(function () use ($box, $listener, $open): void {
            if (($this->listeners[$box] ?? null) === $listener) {
                $open();
            }
        });
    }

    private static function unavailable(): BrokerUnavailableException
    {
        return BrokerUnavailableException::at('memory', 'it is cut off');
    }
}
