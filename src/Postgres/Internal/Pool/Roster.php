<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
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
 * A session is lent to one borrower alone, or shared by queries that are known to be short ({@see Paces}). Who waits is in the
 * {@see Queue}. For whoever is to have a session alone one of those that are shared is reserved: nobody shares that one any more, so that
 * it is free as soon as those who do are done. No more are reserved than there are who wait so.
 */
final class Roster implements Lender
{
    /** Seconds for a connection that was idle to show that it is there. */
    private const ANSWERS_WITHIN = 1.0;

    /** Queries that share a session from which on another is opened, where the answer does not come soon. */
    private const CROWDED = 4;

    /** @var array<int, Member> by the session's object id */
    private array $lent = [];

    /** Members that were idle for a time and are tried now, to be shared. */
    private int $trying = 0;

    private bool $closed = false;

    private ?string $sweep = null;

    private readonly int $process;

    public readonly Counts $counts;

    private readonly Members $members;

    private readonly Queue $queue;

    private readonly Openings $openings;

    /** @param \Closure(string): void $warn */
    public function __construct(
        private readonly Sessions $sessions,
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
        $this->members = new Members();
        $this->queue = new Queue($this->counts, static fn() => $weak->get()?->left(), static fn(Member $member) => $weak->get()?->freed($member));
    }

    /** A session for one query that is known to be short. {@see release()} gives it back. */
    public function share(?Cancellation $cancellation): Member
    {
        $member = $this->queue->sharers === 0 && !$this->closed ? $this->members->shareable() : null;
        if ($member === null || $this->isStale($member)) {
            return $this->obtain(false, $cancellation);
        }
        if (++$member->queries > self::CROWDED && $this->openings->underWay === 0 && \count($this->members->all) < $this->most && !$member->answersSoon(hrtime(true))) {
            $this->grow();
        }
        ++$this->counts->acquired;

        return $member;
    }

    /** A shared query is done. */
    public function release(Member $member): void
    {
        if (--$member->queries === 0 || $member->reserved || $this->queue->waiting !== []) {
            $this->leftBySharer($member);
        }
    }

    /**
     * A shared query has failed, or was left.
     *
     * @throws \LogicException in a fork, where each does; to look for that in {@see share()} would cost as much again
     */
    public function releaseFailed(Member $member): void
    {
        --$member->queries;
        $this->ensureOurs();
        if ($member->queries === 0 && $member->session->inFlight() > 0) {
            $this->lookAfter($member);
        } else {
            $this->leftBySharer($member);
        }
    }

    public function take(?Cancellation $cancellation): Session
    {
        $member = $this->obtain(true, $cancellation);
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
        $idle = \count(array_filter($this->members->all, static fn(Member $member): bool => $member->isFree()));

        return ['inUse' => \count($this->members->all) - $idle, 'idle' => $idle, 'opening' => $this->openings->underWay, 'waiting' => \count($this->queue->waiting)];
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
        $this->queue->refuse(ConnectionClosedException::pool());
        foreach ($this->members->all as $member) {
            if ($member->isFree()) {
                $this->members->drop($member);
            }
        }
    }

    /** Ends all, whoever uses them. */
    public function kill(): void
    {
        $this->close();
        foreach ($this->members->all as $member) {
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
        $this->ensureOurs();
    }

    private function ensureOurs(): void
    {
        if (!$this->isOurs()) {
            throw new \LogicException('A pool of connections to PostgreSQL can not be used in a fork of the process that created it; create another');
        }
    }

    /** A member that is there: one that was idle for a time is tried first. It counts the query, or is the caller's alone. */
    private function obtain(bool $alone, ?Cancellation $cancellation): Member
    {
        $start = hrtime(true);
        do {
            $this->ensureUsable();
            $left = $this->options->acquireTimeout - (hrtime(true) - $start) / 1e9;
            $member = $left > 0 ? $this->lendable($alone) : null;
            if ($member === null) {
                $member = $this->await($alone, $left, $cancellation);
                // It may have ended in the moment since it was given.
                $isThere = $member->session->isOpen();
            } else {
                $isThere = !$this->isStale($member) || $this->answers($member, $alone, $left, $cancellation);
                $member->alone = $alone;
                $member->queries += $alone ? 0 : 1;
            }
        } while (!$isThere);
        ++$this->counts->acquired;
        if ($member->queries > 0 && $this->queue->waiting !== []) {
            // They may have come while it was tried.
            $this->serve($member);
        }

        return $member;
    }

    private function lendable(bool $alone): ?Member
    {
        return match (true) {
            $alone => $this->members->free(),
            $this->queue->sharers > 0 => null,
            default => $this->members->shareable(),
        };
    }

    private function await(bool $alone, float $seconds, ?Cancellation $cancellation): Member
    {
        $waiting = \count($this->queue->waiting);
        // Who has a connection opened for him, or shares one that is being tried, takes no place.
        if ($waiting - ($this->most - \count($this->members->all)) - ($alone ? 0 : $this->trying * Member::MOST_SHARING) >= $this->options->maxWaiting) {
            throw PoolTimeoutException::full($waiting);
        }
        $cancellation?->throwIfRequested();
        $id = $this->queue->enter($alone);
        $this->grow();
        $this->openings->hold(true);
        $this->reserve();

        return $this->queue->wait($id, $seconds, $cancellation, fn(): PoolTimeoutException => PoolTimeoutException::after(
            $this->options->acquireTimeout,
            \count($this->members->all),
            $this->openings->underWay,
            \count($this->queue->waiting) - 1,
            $this->openings->failure,
        ));
    }

    /** Somebody waits no more. */
    private function left(): void
    {
        $this->reserve();
        if ($this->queue->waiting === []) {
            $this->openings->hold(false);
        }
    }

    /** Those who would share are served with what is reserved no more. */
    private function reserve(): void
    {
        foreach ($this->members->reserve($this->queue->alone()) as $member) {
            if ($member->isShareable(hrtime(true))) {
                $this->queue->serve($member);
            }
        }
    }

    /** A session may be of use to those who wait. */
    private function freed(Member $member): void
    {
        if (!$member->session->isOpen() || $member->isFree() && ($this->closed || $member->session->lastActivity() > $member->until || !$this->sessions->suits($member->session))) {
            $this->members->drop($member);
            $this->growForWaiting();

            return;
        }
        if ($this->queue->waiting !== []) {
            $this->serve($member);
        }
        if ($member->isFree() && $this->sweep === null) {
            $this->sweepLater();
        }
    }

    private function serve(Member $member): void
    {
        $concernsReserved = $this->queue->alone() > 0;
        $this->queue->serve($member);
        if ($concernsReserved) {
            $this->reserve();
        }
        if ($this->queue->waiting === []) {
            $this->openings->hold(false);
        }
    }

    private function leftBySharer(Member $member): void
    {
        $member->session->transactionStatus() === 'I' && !$member->alone && $this->sessions->suits($member->session) ? $this->freed($member) : $this->spoiled($member);
    }

    /** A query that shared it has begun a transaction, which is no place for others: nobody joins them, and it is looked after. */
    private function spoiled(Member $member): void
    {
        if ($member->queries === 0) {
            $this->lookAfter($member);
        } else {
            $member->alone = true;
            $member->reserved = false;
            $this->reserve();
        }
    }

    private function isStale(Member $member): bool
    {
        return $member->queries === 0 && $this->sinceIdle($member) >= $this->options->validateAfter;
    }

    private function sinceIdle(Member $member): float
    {
        return (hrtime(true) - $member->session->lastActivity()) / 1e9;
    }

    /** Whether it is there, and nobody else gets it meanwhile; if not, it is dropped. Who is cancelled leaves it to others. */
    private function answers(Member $member, bool $alone, float $seconds, ?Cancellation $cancellation): bool
    {
        $member->alone = true;
        $shared = $alone ? 0 : 1;
        $this->trying += $shared;
        $trial = async(function () use ($member, $shared, $seconds): void {
            $late = EventLoop::delay(min($seconds, self::ANSWERS_WITHIN), fn() => $this->members->drop($member));
            try {
                $member->session->ping();
            } catch (\Throwable) {
                $this->members->drop($member);
            }
            EventLoop::cancel($late);
            $this->trying -= $shared;
        });
        try {
            $trial->await($cancellation);
        } catch (\Throwable $interruption) {
            $trial->finally(function () use ($member): void {
                $member->alone = false;
                $this->freed($member);
            })->ignore();
            throw $interruption;
        }
        if (!$member->session->isOpen()) {
            $this->growForWaiting();

            return false;
        }

        return true;
    }

    /** Makes a session that was given back as it was at first, before anybody gets it. */
    private function lookAfter(Member $member): void
    {
        $member->alone = true;
        $member->reserved = false;
        async(function () use ($member): void {
            $isLeftOpen = false;
            try {
                $member->session->settle();
                $isLeftOpen = $member->session->isOpen() && $member->session->transactionStatus() !== 'I';
                $member->session->reset();
            } catch (\Throwable) {
                $member->session->close();
            }
            $member->alone = false;
            $this->freed($member);
            if ($isLeftOpen) {
                // Only now, for whoever is told may want a connection himself.
                ($this->warn)('A transaction was left open on a connection that was given back to the pool, and is rolled back');
            }
        })->ignore();
    }

    private function growForWaiting(): void
    {
        if ($this->queue->waiting !== []) {
            $this->reserve();
            $this->grow();
        } elseif (\count($this->members->all) < $this->options->minConnections) {
            $this->grow();
        }
    }

    /** Opens as many more as are needed and possible. */
    private function grow(): void
    {
        if (!$this->isOurs()) {
            return;
        }
        $underWay = $this->openings->underWay;
        $open = \count($this->members->all) + $underWay;
        // Who would share waits for those that are being tried, and that is not for long.
        $waiting = $this->trying > 0 ? $this->queue->alone() : \count($this->queue->waiting);
        $wanted = max($waiting - $underWay, $this->options->minConnections - $open, $this->queue->waiting === [] ? 1 - $underWay : 0);
        $this->openings->start(min($wanted, $this->most - $open));
    }

    private function opened(Session $session): void
    {
        ++$this->counts->opened;
        $lifetime = $this->options->maxLifetime * (1 - random_int(0, 100_000) / 1e6);
        $member = new Member($session, (int) min(hrtime(true) + $lifetime * 1e9, \PHP_INT_MAX / 2));
        $this->members->all[] = $member;
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
        $this->openings->hold($this->queue->waiting !== []);
        if ($this->members->all !== [] || $this->openings->underWay > 0 || Transience::of($failure)) {
            return;
        }
        $this->queue->refuse($failure);
    }

    private function lost(Member $member): void
    {
        ++$this->counts->lost;
        $this->members->drop($member);
        $this->growForWaiting();
    }

    /** Closes, in time, sessions that nobody uses. */
    private function sweepLater(): void
    {
        if ($this->sweep !== null || $this->closed || min($this->options->idleTimeout, $this->options->maxLifetime) >= 1e9) {
            return;
        }
        $this->sweep = WeakTimer::after(min($this->options->idleTimeout, $this->options->maxLifetime) / 2, $this, static function (self $self): void {
            $self->sweep = null;
            foreach ($self->members->all as $member) {
                if ($member->isFree() && (hrtime(true) > $member->until || $self->sinceIdle($member) >= $self->options->idleTimeout && \count($self->members->all) > $self->options->minConnections)) {
                    $self->members->drop($member);
                }
            }
            $self->growForWaiting();
            if ($self->members->all !== []) {
                $self->sweepLater();
            }
        });
    }
}
