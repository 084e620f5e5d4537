<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Lender;
use Spindle\Postgres\Internal\Native\Exchange;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\Sessions;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresPoolOptions;

use function Amp\async;

/**
 * The sessions of a pool, and the fibers that wait for them.
 *
 * A session is lent to one borrower alone, or shared by queries that are known to be short ({@see ShortStatements}). Fibers that wait are
 * in the {@see Queue}. For each borrower that needs a session alone, a shared one is reserved: no further query shares it, so that it is
 * free as soon as its queries are done.
 *
 * A session counts a query of {@see Queries} from when it is sent until its answer is read. Then, before the fiber runs that the answer is
 * for, the next query that waits is sent, whose fiber sleeps on.
 */
final class Roster implements Lender
{
    /** Seconds for a connection that was idle to show that it is there. */
    private const ANSWERS_WITHIN = 1.0;

    /** @var array<int, array{Member, \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null}> with its holder, by the session's object id */
    private array $lent = [];

    /** Members that were idle for a time and are tried now, to be shared. */
    private int $trying = 0;

    private bool $closed = false;

    private ?string $sweep = null;

    /** The timer of the next look. */
    private ?string $look = null;

    private readonly int $process;

    public readonly Counts $counts;

    private readonly Members $members;

    private readonly Queue $queue;

    private readonly Openings $openings;

    public readonly Holders $holders;

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
            static fn() => $weak->get()?->openAgain(),
        );
        $this->process = (int) getmypid();
        $this->counts = new Counts();
        $this->members = new Members();
        $this->holders = new Holders();
        $this->queue = new Queue(
            $this->counts,
            $options->acquireTimeout,
            static fn(): \Throwable => $weak->get()?->late() ?? ConnectionClosedException::pool(),
            static fn() => $weak->get()?->left(),
        );
    }

    public function take(?Cancellation $cancellation): Session
    {
        $member = $this->obtain(true, 0, $cancellation);
        $this->lent[spl_object_id($member->session)] = [$member, $this->holders->add()];
        if ($member->native !== null) {
            $member->native->isTimed = false;
        }

        return $member->session;
    }

    public function handOver(Session $session): void {}

    public function give(Session $session): void
    {
        [$member, $holder] = $this->lent[spl_object_id($session)];
        unset($this->lent[spl_object_id($session)]);
        $this->holders->remove($holder);
        if ($member->native !== null) {
            $member->native->isTimed = true;
        }
        $this->giveBack($member);
    }

    /** @return array{inUse: int, idle: int, opening: int, waiting: int} */
    public function figures(): array
    {
        $idle = \count(array_filter($this->members->all, static fn(Member $member): bool => $member->isFree()));

        return ['inUse' => \count($this->members->all) - $idle, 'idle' => $idle, 'opening' => $this->openings->underWay, 'waiting' => $this->queue->count()];
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

    public function ensureOurs(): void
    {
        if (!$this->isOurs()) {
            throw new \LogicException('A pool of connections to PostgreSQL can not be used in a fork of the process that created it; create another');
        }
    }

    /** Returns one that is available at once, null if none is. The caller is not counted yet. */
    public function available(bool $alone, int $cost): ?Member
    {
        if ($this->closed) {
            return null;
        }
        if ($alone) {
            return $this->queue->alone->count > 0 ? null : $this->members->free();
        }
        if ($this->queue->sharers->count > 0) {
            return null;
        }
        $member = $this->members->shareable($cost);
        while ($member !== null && $member->borrowers > 0 && $this->members->reserved < $this->queue->alone->count) {
            $this->members->reserve($member);
            $member = $this->members->shareable($cost);
        }
        if ($member !== null && $member->borrowers > 0) {
            if ($this->look === null) {
                $this->lookLater();
            }
            if (\count($this->members->all) < $this->most && $this->openings->underWay === 0 && !$member->answersSoon($cost)) {
                $this->grow();
            }
        }

        return $member;
    }

    /** A member that is there, and counts the caller: one that was idle for a time is tried first. */
    public function obtain(bool $alone, int $cost, ?Cancellation $cancellation): Member
    {
        $since = hrtime(true);
        for (;;) {
            $this->ensureUsable();
            $left = $this->options->acquireTimeout - (hrtime(true) - $since) / 1e9;
            $member = $left > 0 ? $this->available($alone, $cost) : null;
            if ($member === null) {
                $member = $this->await(new Waiter(new Exchange(), $alone, $cost, $since), $cancellation);
                if ($member->session->isOpen()) {
                    return $member;
                }
                // It has ended in the moment since it was given.
                $this->release($member, $cost);
            } elseif (!$this->isStale($member) || $this->answers($member, $alone, $left, $cancellation)) {
                $member->lend($alone, $cost);
                ++$this->counts->acquired;
                if (!$alone && $this->queue->sharers->count > 0) {
                    // They may have come while it was tried.
                    $this->serve($member);
                }

                return $member;
            }
        }
    }

    public function enter(Waiter $waiter): void
    {
        $this->ensureUsable();
        $waiting = $this->queue->count();
        $open = \count($this->members->all);
        // Who has a connection opened for him, or shares one that is being tried, takes no place.
        if ($waiting - ($this->most - $open) - ($waiter->alone ? 0 : $this->trying * Member::MOST_SHARING) >= $this->options->maxWaiting) {
            throw PoolTimeoutException::full($waiting);
        }
        $this->queue->add($waiter);
        if ($open < $this->most) {
            $this->grow();
        }
        if ($waiting === 0) {
            $this->openings->hold(true);
        }
    }

    /** The fiber will not come back to what it waits for. */
    public function leave(Exchange $exchange, ?Waiter $waiter, ?Member $member): void
    {
        $member ??= $waiter?->member;
        if ($member === null) {
            if ($waiter !== null && $this->queue->remove($waiter)) {
                $this->left();
            }
        } elseif ($waiter !== null && !$waiter->isSent) {
            $this->release($member, $waiter->cost);
        } else {
            $member->native?->abandon($exchange);
            $this->releaseFailed($member, $exchange);
        }
    }

    /**
     * A query that was sent failed, or was left. The session may count it no more.
     *
     * @throws \LogicException in a fork, where each query fails; to look for that with each query would cost as much again
     */
    public function releaseFailed(Member $member, Exchange $exchange): void
    {
        if ($exchange->cost >= 0) {
            $cost = $exchange->cost;
            $exchange->cost = -1;
            $this->release($member, $cost);
        }
        $this->ensureOurs();
    }

    /** One borrower less. */
    public function release(Member $member, int $cost): void
    {
        $member->takeBack($cost);
        if ($member->session->transactionStatus() !== 'I' || !$this->sessions->suits($member->session)) {
            // A transaction that something has begun, or a server that has become read-only, is no place for others.
            $member->spoil();
        }
        if ($member->borrowers === 0 && ($member->spoiled || $member->session->inFlight() > 0)) {
            $this->lookAfter($member);
        } else {
            $this->freed($member);
        }
    }

    /** One that had it alone, and may have done anything, does not need it any more. */
    public function giveBack(Member $member): void
    {
        $session = $member->session;
        $member->takeBack(0);
        if ($session->isOpen() && ($session->inFlight() > 0 || $session->transactionStatus() !== 'I' || $session->isChanged())) {
            $this->lookAfter($member);
        } else {
            $this->freed($member);
        }
    }

    public function isStale(Member $member): bool
    {
        return $member->borrowers === 0 && $this->sinceIdle($member) >= $this->options->validateAfter;
    }

    private function ensureUsable(): void
    {
        if ($this->closed) {
            throw ConnectionClosedException::pool();
        }
        $this->ensureOurs();
    }

    private function await(Waiter $waiter, ?Cancellation $cancellation): Member
    {
        $cancellation?->throwIfRequested();
        $this->enter($waiter);
        $isAwake = false;
        try {
            $this->queue->wait($waiter, $cancellation);
            $isAwake = true;
        } finally {
            if (!$isAwake) {
                $this->leave($waiter->exchange, $waiter, null);
            }
        }

        return $waiter->member ?? throw new \LogicException('A fiber that waits for a session was woken without one');
    }

    /** A waiter is gone. */
    private function left(): void
    {
        while ($this->members->reserved > $this->queue->alone->count && ($member = $this->members->aReserved()) !== null) {
            $this->members->unreserve($member);
            $this->serve($member);
        }
        if (!$this->queue->isHeld) {
            $this->openings->hold(false);
        }
    }

    private function late(): \Throwable
    {
        return PoolTimeoutException::after(
            $this->options->acquireTimeout,
            \count($this->members->all),
            $this->openings->underWay,
            $this->queue->count(),
            $this->openings->failure,
        );
    }

    /**
     * Queries were answered, and their fibers do not know yet.
     *
     * @param list<Exchange> $exchanges
     */
    private function answered(Member $member, array $exchanges): void
    {
        $released = false;
        foreach ($exchanges as $exchange) {
            if ($exchange->cost < 0 || !$exchange->done) {
                continue;
            }
            if ($exchange->status !== 'I') {
                $member->spoil();
            } elseif ($exchange->error === null && $exchange->failure === null && $exchange->copy === '') {
                $member->takeBack($exchange->cost);
                $exchange->cost = -1;
                $released = true;
            }
        }
        if (!$released) {
            return;
        }
        $member->still = 0;
        if ($member->borrowers > 0) {
            if ($this->queue->sharers->count > 0) {
                $this->serve($member);
            }
        } elseif ($member->spoiled) {
            $this->lookAfter($member);
        } else {
            $this->freed($member);
        }
    }

    private function lookLater(): void
    {
        $this->look = WeakTimer::after(Member::LOOK_EACH / 1e9, $this, static function (self $self): void {
            $self->look = null;
            $isShared = false;
            foreach ($self->members->all as $member) {
                $isShared = $isShared || $member->borrowers > 1;
                if ($member->look() && $self->isOurs()) {
                    // It may wait for something that a statement behind it has to do. It runs again, with nothing behind it.
                    $member->spoil();
                    $member->native?->postpone();
                }
            }
            if ($isShared) {
                $self->lookLater();
            }
        });
    }

    /** A session may be free for waiters. */
    private function freed(Member $member): void
    {
        $isFree = !$member->alone && $member->borrowers === 0;
        if (!$member->session->isOpen() || $isFree && ($this->closed || $member->session->lastActivity() > $member->until || !$this->sessions->suits($member->session))) {
            $this->members->drop($member);
            $this->growForWaiting();

            return;
        }
        if ($this->queue->alone->count > 0 || $this->queue->sharers->count > 0) {
            $this->serve($member);
        }
        if ($this->sweep === null && $isFree && $member->isFree()) {
            $this->sweepLater();
        }
    }

    private function serve(Member $member): void
    {
        if ($member->reserved && $member->borrowers === 0) {
            $this->members->unreserve($member);
        }
        while (!$member->alone && ($waiter = $this->queue->next($member)) !== null) {
            $this->lendTo($waiter, $member);
        }
        if ($member->borrowers > 0 && !$member->alone) {
            if (!$member->reserved && $this->members->reserved < $this->queue->alone->count) {
                $this->members->reserve($member);
            }
            if ($this->look === null && $member->borrowers > 1) {
                $this->lookLater();
            }
        }
        if ($this->members->reserved > $this->queue->alone->count) {
            $this->left();
        }
    }

    /** Sends its statement, where there is one that can be sent at once; otherwise the fiber goes on with the session. */
    private function lendTo(Waiter $waiter, Member $member): void
    {
        $this->queue->remove($waiter);
        $waiter->member = $member;
        $member->lend($waiter->alone, $waiter->cost);
        ++$this->counts->acquired;
        $this->counts->waited((hrtime(true) - $waiter->since) / 1e9);
        if ($waiter->sql !== null) {
            try {
                $waiter->isSent = $member->native?->send($waiter->exchange, $waiter->sql, $waiter->parameters) ?? false;
            } catch (\Throwable) {
                // Values that can't be sent: the fiber will have the same exception.
                $waiter->isSent = false;
            }
        }
        if ($waiter->isSent) {
            $waiter->exchange->cost = $waiter->cost;
        } else {
            EventLoop::queue($waiter->exchange->wake(...));
        }
        if (!$this->queue->isHeld) {
            $this->openings->hold(false);
        }
    }

    private function sinceIdle(Member $member): float
    {
        return (hrtime(true) - $member->session->lastActivity()) / 1e9;
    }

    /** Whether it is there, and nobody else gets it meanwhile; if not, it is dropped. Who is cancelled leaves it to others. */
    private function answers(Member $member, bool $alone, float $seconds, ?Cancellation $cancellation): bool
    {
        $member->alone = true;
        $this->members->unreserve($member);
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
        $member->alone = false;
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
        $this->members->unreserve($member);
        async(function () use ($member): void {
            $isLeftOpen = false;
            try {
                $member->session->settle();
                $isLeftOpen = $member->session->isOpen() && $member->session->transactionStatus() !== 'I';
                $member->session->reset();
            } catch (\Throwable) {
                $member->session->close();
            }
            $member->alone = $member->spoiled = false;
            $this->freed($member);
            if ($isLeftOpen) {
                // Only now, for whoever is told may want a connection himself.
                ($this->warn)('A transaction was left open on a connection that was given back to the pool, and is rolled back');
            }
        })->ignore();
    }

    /** Without a waiter, what will not pass by itself is left alone: a login that is refused over and over may lock the account. */
    private function openAgain(): void
    {
        if ($this->queue->count() > 0 || $this->openings->failure === null || Transience::of($this->openings->failure)) {
            $this->growForWaiting();
        }
    }

    private function growForWaiting(): void
    {
        if ($this->queue->count() > 0 || \count($this->members->all) < $this->options->minConnections) {
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
        $waiting = $this->trying > 0 ? $this->queue->alone->count : $this->queue->count();
        $wanted = max($waiting - $underWay, $this->options->minConnections - $open, $this->queue->count() === 0 ? 1 - $underWay : 0);
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
        if ($member->native !== null) {
            $member->native->isTimed = true;
            $member->native->onAnswered(static fn(array $exchanges) => $weak->get()?->answered($member, $exchanges));
        }
        $this->freed($member);
        $this->growForWaiting();
    }

    /** A failure that will not pass by itself is reported at once; so is that no server was there when the pool was used first. */
    private function failedToOpen(\Throwable $failure): void
    {
        $this->openings->hold($this->queue->count() > 0);
        if ($this->members->all !== [] || $this->openings->underWay > 0) {
            return;
        }
        $isNoServer = $this->counts->opened === 0 && $failure instanceof ConnectionFailedException && $failure->sqlState === null;
        if ($isNoServer || !Transience::of($failure)) {
            $this->queue->refuse($failure);
        }
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
