<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Internal\Lender;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\Sessions;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresPoolOptions;

use function Amp\async;

/**
 * The sessions of a pool, and who waits for them.
 *
 * A session is lent to one borrower alone, or shared by queries that are known to be short ({@see Paces}). Who waits is served
 * in order. Whoever is to have a session alone while all are shared has one reserved: nobody shares that one any more, and it is his
 * as soon as those who do are done.
 */
final class Roster implements Lender
{
    /** Seconds for a connection that was idle to show that it is there. */
    private const ANSWERS_WITHIN = 1.0;

    /** Queries that share a session from which on another is opened, where the answer does not come soon. */
    private const CROWDED = 4;

    /** @var list<Member> */
    private array $members = [];

    /** @var array<int, Member> by the session's object id */
    private array $lent = [];

    /** @var array<int, Waiter> in the order of their coming */
    private array $waiting = [];

    /** Of those who wait, who would share. */
    private int $sharersWaiting = 0;

    private int $ids = 0;

    private int $turn = 0;

    private bool $closed = false;

    private ?string $sweep = null;

    private readonly int $process;

    public readonly Counts $counts;

    private readonly Openings $openings;

    /** @param \Closure(string): void $warn */
    public function __construct(
        Sessions $sessions,
        private readonly int $most,
        private readonly PostgresPoolOptions $options,
        private readonly \Closure $warn,
    ) {
        $weak = \WeakReference::create($this);
        $this->openings = new Openings(
            $sessions,
            static fn(Session $session) => $weak->get()?->opened($session),
            static fn(\Throwable $failure) => $weak->get()?->failedToOpen($failure),
            static fn() => $weak->get()?->growForWaiting(),
        );
        $this->process = (int) getmypid();
        $this->counts = new Counts();
    }

    /** A session for one query that is known to be short. {@see release()} gives it back. */
    public function share(?Cancellation $cancellation): Member
    {
        ++$this->counts->acquired;
        $member = $this->sharersWaiting === 0 && !$this->closed ? $this->shareable() : null;
        if ($member === null) {
            $this->ensureUsable();

            return $this->await(false, $cancellation);
        }
        if ($member->queries++ === 0 && hrtime(true) - $member->session->lastActivity() > $this->options->validateAfter * 1e9) {
            return $this->validated($member, false, $cancellation);
        }
        if ($member->queries > self::CROWDED && $this->openings->underWay === 0 && \count($this->members) < $this->most && !$member->answersSoon(hrtime(true))) {
            $this->grow();
        }

        return $member;
    }

    /** A shared query is done. */
    public function release(Member $member): void
    {
        if (--$member->queries === 0 || $member->reserved || $this->waiting !== []) {
            $this->freed($member);
        }
    }

    /** A shared query has failed, or was left. */
    public function releaseFailed(Member $member): void
    {
        if (--$member->queries === 0 && $member->session->inFlight() > 0) {
            $this->lookAfter($member);
        } else {
            $this->freed($member);
        }
    }

    public function take(?Cancellation $cancellation): Session
    {
        $this->ensureUsable();
        ++$this->counts->acquired;
        $member = $this->free() ?? $this->await(true, $cancellation);
        $member->alone = true;
        $member = $this->validated($member, true, $cancellation);
        $this->lent[spl_object_id($member->session)] = $member;

        return $member->session;
    }

    public function handOver(Session $session): void {}

    public function give(Session $session): void
    {
        $member = $this->lent[spl_object_id($session)];
        unset($this->lent[spl_object_id($session)]);
        if ($session->isOpen() && ($session->inFlight() > 0 || $session->transactionStatus() !== 'I' || $session->isChanged())) {
            $this->lookAfter($member);
        } else {
            $member->alone = false;
            $this->freed($member);
        }
    }

    /** @return array{inUse: int, idle: int, opening: int, waiting: int} */
    public function figures(): array
    {
        $idle = \count(array_filter($this->members, static fn(Member $member): bool => $member->isFree()));

        return ['inUse' => \count($this->members) - $idle, 'idle' => $idle, 'opening' => $this->openings->underWay, 'waiting' => \count($this->waiting)];
    }

    public function isClosed(): bool
    {
        return $this->closed;
    }

    /** Nobody gets a session any more; those that are in use end when they are given back. */
    public function close(): void
    {
        $this->closed = true;
        $this->openings->close();
        if ($this->sweep !== null) {
            EventLoop::cancel($this->sweep);
        }
        foreach ($this->waiting as $id => $waiter) {
            $this->forget($id);
            $waiter->suspension->throw(ConnectionClosedException::pool());
        }
        foreach ($this->members as $member) {
            if ($member->isFree()) {
                $this->drop($member);
            }
        }
    }

    /** Ends all, whoever uses them. */
    public function kill(): void
    {
        $this->close();
        foreach ($this->members as $member) {
            $member->session->stop();
            $member->session->close();
        }
    }

    public function isOurs(): bool
    {
        return $this->process === getmypid();
    }

    private function ensureUsable(): void
    {
        if ($this->closed) {
            throw ConnectionClosedException::pool();
        }
        if ($this->process !== getmypid()) {
            throw new \LogicException('A pool of connections to PostgreSQL can not be used in a fork of the process that created it; create another');
        }
    }

    private function free(): ?Member
    {
        foreach ($this->members as $member) {
            if ($member->isFree() && !$member->reserved) {
                return $member;
            }
        }

        return null;
    }

    /**
     * The first where a statement is answered soon: those who share it share its round trips too, which for short statements are most of
     * what they cost on either side, and the server has fewer processes to wake. Where the server takes its time, of two the one with fewer
     * queries, which is nearly as good as the least busy of all.
     */
    private function shareable(): ?Member
    {
        $now = hrtime(true);
        foreach ($this->members as $member) {
            if ($member->answersSoon($now)) {
                return $member;
            }
        }
        $best = null;
        $count = \count($this->members);
        for ($looks = $count; $looks > 0; --$looks) {
            $member = $this->members[$this->turn = ($this->turn + 1) % $count];
            if ($member->isShareable($now)) {
                if ($best !== null) {
                    return $member->queries < $best->queries ? $member : $best;
                }
                $best = $member;
            }
        }

        return $best;
    }

    /** @param float|null $seconds that may be waited for; null for as long as anybody may */
    private function await(bool $alone, ?Cancellation $cancellation, ?float $seconds = null): Member
    {
        if (\count($this->waiting) >= $this->options->maxWaiting) {
            throw PoolTimeoutException::full(\count($this->waiting));
        }
        $cancellation?->throwIfRequested();
        $id = ++$this->ids;
        $waiter = $this->waiting[$id] = new Waiter(EventLoop::getSuspension(), $alone, hrtime(true));
        $this->sharersWaiting += $alone ? 0 : 1;
        $seconds ??= $this->options->acquireTimeout;
        if ($seconds < 1e9) {
            $waiter->timer = EventLoop::delay(max(0.0, $seconds), function () use ($id, $waiter): void {
                $this->forget($id);
                ++$this->counts->timedOut;
                $waiter->suspension->throw(PoolTimeoutException::after($this->options->acquireTimeout, \count($this->members), $this->openings->underWay, \count($this->waiting), $this->openings->failure));
            });
        }
        $subscription = $cancellation?->subscribe(function (CancelledException $reason) use ($id, $waiter): void {
            if (isset($this->waiting[$id])) {
                $this->forget($id);
                $waiter->suspension->throw($reason);
            }
        });
        $this->grow();
        $this->reserve();
        try {
            return $waiter->suspension->suspend();
        } catch (\Throwable $interruption) {
            if (isset($this->waiting[$id])) {
                $this->forget($id);
            } elseif ($waiter->given !== null) {
                // It came when {main} had been interrupted by an exception out of the loop.
                $alone ? $waiter->given->alone = false : --$waiter->given->queries;
                $this->freed($waiter->given);
            }
            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $subscription);
            }
        }
    }

    private function forget(int $id): void
    {
        $waiter = $this->waiting[$id];
        unset($this->waiting[$id]);
        $this->sharersWaiting -= $waiter->alone ? 0 : 1;
        if ($waiter->timer !== '') {
            EventLoop::cancel($waiter->timer);
        }
        if ($waiter->alone && $this->waiting === []) {
            foreach ($this->members as $member) {
                $member->reserved = false;
            }
        }
    }

    /** Sees to it that of the sessions that are shared as many run empty as there are borrowers who wait to have one alone. */
    private function reserve(): void
    {
        $wanted = \count($this->waiting) - $this->sharersWaiting - $this->openings->underWay;
        $shared = [];
        foreach ($this->members as $member) {
            if ($member->reserved) {
                --$wanted;
            } elseif (!$member->alone) {
                $shared[] = $member;
            }
        }
        usort($shared, static fn(Member $a, Member $b): int => $a->queries <=> $b->queries);
        foreach (\array_slice($shared, 0, max(0, $wanted)) as $member) {
            $member->reserved = true;
        }
    }

    /** A session may be of use to those who wait. */
    private function freed(Member $member): void
    {
        if (!$member->session->isOpen() || $member->isFree() && ($this->closed || $member->session->lastActivity() > $member->until)) {
            $this->drop($member);
            $this->growForWaiting();

            return;
        }
        foreach ($this->waiting as $id => $waiter) {
            $mayShare = !$member->reserved && $member->queries < Member::MOST_SHARING;
            if ($member->alone || $member->queries > 0 && (!$mayShare || $this->sharersWaiting === 0)) {
                break;
            }
            if ($waiter->alone ? $member->queries > 0 : !$mayShare) {
                continue;
            }
            $this->forget($id);
            $this->counts->waited((hrtime(true) - $waiter->since) / 1e9);
            $member->alone = $waiter->alone;
            $member->reserved = false;
            $member->queries += $waiter->alone ? 0 : 1;
            $waiter->given = $member;
            $waiter->suspension->resume($member);
        }
        if (\count($this->waiting) > $this->sharersWaiting) {
            $this->reserve();
        } elseif ($member->isFree()) {
            $member->reserved = false;
        }
        if ($member->isFree() && $this->sweep === null) {
            $this->sweepLater();
        }
    }

    private function sinceIdle(Member $member): float
    {
        return (hrtime(true) - $member->session->lastActivity()) / 1e9;
    }

    /** The member, or another when its connection does not answer after a time of idleness. */
    private function validated(Member $member, bool $alone, ?Cancellation $cancellation): Member
    {
        $start = hrtime(true);
        while ($this->sinceIdle($member) >= $this->options->validateAfter || !$member->session->isOpen()) {
            $left = $this->options->acquireTimeout - (hrtime(true) - $start) / 1e9;
            if ($member->session->isOpen()) {
                try {
                    $member->session->ping(new TimeoutCancellation(max(0.0, min($left, self::ANSWERS_WITHIN))));
                    break;
                } catch (\Throwable) {
                    $member->session->close();
                }
            }
            $alone ? $member->alone = false : --$member->queries;
            $this->drop($member);
            $member = ($alone ? $this->free() : null) ?? $this->await($alone, $cancellation, $this->options->acquireTimeout - (hrtime(true) - $start) / 1e9);
            $member->alone = $alone;
        }

        return $member;
    }

    /** Makes a session that was given back as it was at first, before anybody gets it. */
    private function lookAfter(Member $member): void
    {
        $member->alone = true;
        async(function () use ($member): void {
            try {
                $member->session->settle();
                if ($member->session->isOpen() && $member->session->transactionStatus() !== 'I') {
                    ($this->warn)('A transaction was left open on a connection that was given back to the pool, and is rolled back');
                }
                $member->session->reset();
            } catch (\Throwable) {
                $member->session->close();
            }
            $member->alone = false;
            $this->freed($member);
        })->ignore();
    }

    private function growForWaiting(): void
    {
        if ($this->waiting !== [] || \count($this->members) < $this->options->minConnections) {
            $this->grow();
        }
    }

    /** Opens as many more as are needed and possible. */
    private function grow(): void
    {
        $underWay = $this->openings->underWay;
        $open = \count($this->members) + $underWay;
        $wanted = max(\count($this->waiting) - $underWay, $this->options->minConnections - $open, $this->waiting === [] ? 1 - $underWay : 0);
        $this->openings->start(min($wanted, $this->most - $open));
    }

    private function opened(Session $session): void
    {
        ++$this->counts->opened;
        $lifetime = $this->options->maxLifetime * (1 - random_int(0, 100_000) / 1e6);
        $member = new Member($session, (int) min(hrtime(true) + $lifetime * 1e9, \PHP_INT_MAX / 2));
        $this->members[] = $member;
        $weak = \WeakReference::create($this);
        $session->onClose(static function (?\Throwable $reason) use ($weak, $member): void {
            if ($reason !== null) {
                $weak->get()?->lost($member);
            }
        });
        $this->freed($member);
        $this->growForWaiting();
    }

    /** What will not pass by itself, nobody waits for. */
    private function failedToOpen(\Throwable $failure): void
    {
        if ($this->members !== [] || $this->openings->underWay > 0 || Transience::of($failure)) {
            return;
        }
        foreach ($this->waiting as $id => $waiter) {
            $this->forget($id);
            $waiter->suspension->throw($failure);
        }
    }

    private function lost(Member $member): void
    {
        ++$this->counts->lost;
        if ($member->isFree()) {
            $this->drop($member);
            $this->growForWaiting();
        }
    }

    private function drop(Member $member): void
    {
        $index = array_search($member, $this->members, true);
        if ($index !== false) {
            array_splice($this->members, $index, 1);
        }
        $member->session->close();
    }

    /** Closes, in time, sessions that nobody uses. */
    private function sweepLater(): void
    {
        if ($this->sweep !== null || $this->closed || min($this->options->idleTimeout, $this->options->maxLifetime) >= 1e9) {
            return;
        }
        $this->sweep = WeakTimer::after(min($this->options->idleTimeout, $this->options->maxLifetime) / 2, $this, static function (self $self): void {
            $self->sweep = null;
            foreach ($self->members as $member) {
                if ($member->isFree() && (hrtime(true) > $member->until || $self->sinceIdle($member) >= $self->options->idleTimeout && \count($self->members) > $self->options->minConnections)) {
                    $self->drop($member);
                }
            }
            if ($self->members !== []) {
                $self->sweepLater();
            }
        });
    }
}
