<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Native\Exchange;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionLender;
use Spindle\Postgres\Internal\Sessions;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresPoolOptions;

use function Amp\async;

/**
 * The sessions of a pool, and the fibers that wait for them.
 *
 * A session is lent to one borrower alone, or shared by queries that are known to be short ({@see ShortStatements}).
 * Waiting fibers are in the {@see WaitQueue}. For each borrower that waits for a session alone, a shared session is
 * reserved. No further query is sent on it, so it is free as soon as its queries are done.
 *
 * A query of {@see Queries} uses a session from when it is sent until its answer is read. Then the next waiting query
 * is sent at once: before the fiber of the first query runs, and without waking its own fiber.
 */
final class SessionPool implements SessionLender
{
    /** Seconds within which a connection that was idle must answer a ping. */
    private const PING_TIMEOUT = 1.0;

    /** Seconds that the server has to undo changes of a session. After that, the session is closed. */
    private const RESET_TIMEOUT = 5.0;

    /** @var array<int, array{PooledSession, \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null}> by session id */
    private array $lent = [];

    /** Number of sessions that were idle and are being tested for queries that share. */
    private int $trying = 0;

    private bool $closed = false;

    private ?string $sweep = null;

    /** Timer of the next check of shared sessions. */
    private ?string $look = null;

    private readonly int $process;

    public readonly Counts $counts;

    private readonly PooledSessions $members;

    private readonly WaitQueue $queue;

    private readonly SessionOpener $openings;

    public readonly HoldingFibers $holders;

    /** @param \Closure(string): void $warn */
    public function __construct(
        private readonly Sessions $sessions,
        private readonly int $most,
        private readonly PostgresPoolOptions $options,
        private readonly \Closure $warn,
    ) {
        $weak = \WeakReference::create($this);
        $this->openings = new SessionOpener(
            $sessions,
            static fn(Session $session) => $weak->get()?->opened($session),
            static fn(\Throwable $failure) => $weak->get()?->failedToOpen($failure),
            static fn() => $weak->get()?->openAgain(),
        );
        $this->process = (int) getmypid();
        $this->counts = new Counts();
        $this->members = new PooledSessions();
        $this->holders = new HoldingFibers();
        $this->queue = new WaitQueue(
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

    public function warn(string $warning): void
    {
        ($this->warn)($warning);
    }

    /** @return array{inUse: int, idle: int, opening: int, waiting: int} */
    public function figures(): array
    {
        $idle = \count(array_filter($this->members->all, static fn(PooledSession $member): bool => $member->isFree()));

        return [
            'inUse' => \count($this->members->all) - $idle,
            'idle' => $idle,
            'opening' => $this->openings->underWay,
            'waiting' => $this->queue->count(),
        ];
    }

    public function isClosed(): bool
    {
        return $this->closed;
    }

    /** Stops lending, fails waiters and closes free sessions. The others are closed when they are given back. */
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

    /** Closes the pool and all sessions, also those in use. */
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
            throw new \LogicException(
                'A pool of connections to PostgreSQL can not be used in a fork of the process that created it; create another',
            );
        }
    }

    /** Returns a session that is available at once, or null. The session is not lent yet. */
    public function available(bool $alone, int $cost): ?PooledSession
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
            if (
                \count($this->members->all) < $this->most
                && $this->openings->underWay === 0
                && !$member->answersSoon($cost)
            ) {
                $this->grow();
            }
        }

        return $member;
    }

    /** Waits for an open session and lends it. A session that was idle for long is tested first. */
    public function obtain(bool $alone, int $cost, ?Cancellation $cancellation): PooledSession
    {
        $since = hrtime(true);
        for (;;) {
            $this->ensureUsable();
            $left = $this->options->acquireTimeout - (hrtime(true) - $since) / 1e9;
            $member = $left > 0 ? $this->available($alone, $cost) : null;
            if ($member === null) {
                $member = $this->await(new WaitingFiber(new Exchange(), $alone, $cost, $since), $cancellation);
                if ($member->session->isOpen()) {
                    return $member;
                }
                // The session has ended since it was lent.
                $this->release($member, $cost);
            } elseif (!$this->isStale($member) || $this->answers($member, $alone, $left, $cancellation)) {
                $member->lend($alone, $cost);
                ++$this->counts->acquired;
                if (!$alone && $this->queue->sharers->count > 0) {
                    // Queries that can share may have arrived during the test.
                    $this->serve($member);
                }

                return $member;
            }
        }
    }

    public function enter(WaitingFiber $waiter): void
    {
        $this->ensureUsable();
        $waiting = $this->queue->count();
        $open = \count($this->members->all);
        // Waiters do not count if a session can be opened for them, or if they can share one that is being tested.
        if ($waiting - ($this->most - $open) - ($waiter->alone ? 0 : $this->trying * PooledSession::MOST_SHARING) >= $this->options->maxWaiting) {
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

    /** Releases what a fiber was waiting for, because the fiber will not return. */
    public function leave(Exchange $exchange, ?WaitingFiber $waiter, ?PooledSession $member): void
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
     * Releases the session of a query that failed or was abandoned, unless it was released already.
     *
     * @throws \LogicException in a fork. Each query fails there, and a check before each query would cost too much
     */
    public function releaseFailed(PooledSession $member, Exchange $exchange): void
    {
        if ($exchange->cost >= 0) {
            $cost = $exchange->cost;
            $exchange->cost = -1;
            $this->release($member, $cost);
        }
        $this->ensureOurs();
    }

    /** Takes a session back from a borrower, and resets it if it can not be used as it is. */
    public function release(PooledSession $member, int $cost): void
    {
        $member->takeBack($cost);
        if ($member->session->transactionStatus() !== 'I' || !$this->sessions->suits($member->session)) {
            // Others must not use a transaction that a statement began, or a server that became read-only.
            $member->spoil();
        }
        if ($member->borrowers === 0 && ($member->spoiled || $member->session->inFlight() > 0)) {
            $this->lookAfter($member);
        } else {
            $this->freed($member);
        }
    }

    /** Takes a session back from a borrower that had it alone and may have changed it. */
    public function giveBack(PooledSession $member): void
    {
        $session = $member->session;
        $member->takeBack(0);
        if (
            $session->isOpen()
            && ($session->inFlight() > 0 || $session->transactionStatus() !== 'I' || $session->isChanged())
        ) {
            $this->lookAfter($member);
        } else {
            $this->freed($member);
        }
    }

    public function isStale(PooledSession $member): bool
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

    private function await(WaitingFiber $waiter, ?Cancellation $cancellation): PooledSession
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

    /** Ends reservations that no waiter needs any more, after a waiter has left. */
    private function left(): void
    {
        while (
            $this->members->reserved > $this->queue->alone->count
            && ($member = $this->members->aReserved()) !== null
        ) {
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
     * Releases the session of queries that were answered, before their fibers run.
     *
     * @param list<Exchange> $exchanges
     */
    private function answered(PooledSession $member, array $exchanges): void
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
        $this->look = WeakTimer::after(PooledSession::LOOK_EACH / 1e9, $this, static function (self $self): void {
            $self->look = null;
            $isShared = false;
            foreach ($self->members->all as $member) {
                $isShared = $isShared || $member->borrowers > 1;
                if ($member->look() && $self->isOurs()) {
                    // The query may wait for a statement behind it. So it is stopped, and runs again as the last one.
                    $member->spoil();
                    $member->native?->postpone();
                }
            }
            if ($isShared) {
                $self->lookLater();
            }
        });
    }

    /** Drops a session that is closed or outdated, and lends any other to waiters. */
    private function freed(PooledSession $member): void
    {
        $isFree = !$member->alone && $member->borrowers === 0;
        if (
            !$member->session->isOpen()
            || $isFree
            && (
                $this->closed
                || $member->session->lastActivity() > $member->until
                || !$this->sessions->suits($member->session)
            )
        ) {
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

    private function serve(PooledSession $member): void
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

    /** Lends the session to a waiter: sends its statement if that can be sent at once, else wakes its fiber. */
    private function lendTo(WaitingFiber $waiter, PooledSession $member): void
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
                // The values can not be encoded. The fiber tries again and gets the exception.
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

    private function sinceIdle(PooledSession $member): float
    {
        return (hrtime(true) - $member->session->lastActivity()) / 1e9;
    }

    /** Whether an idle session answers a ping. If not, it is dropped. A cancellation does not stop the ping. */
    private function answers(PooledSession $member, bool $alone, float $seconds, ?Cancellation $cancellation): bool
    {
        $member->alone = true;
        $this->members->unreserve($member);
        $shared = $alone ? 0 : 1;
        $this->trying += $shared;
        $trial = async(function () use ($member, $shared, $seconds): void {
            $late = EventLoop::delay(min($seconds, self::PING_TIMEOUT), fn() => $this->members->drop($member));
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

    /** Resets a session that was given back, before others get it. */
    private function lookAfter(PooledSession $member): void
    {
        $member->alone = true;
        $this->members->unreserve($member);
        async(function () use ($member): void {
            $isLeftOpen = false;
            $limit = '';
            try {
                $member->session->settle();
                $isLeftOpen = $member->session->isOpen() && $member->session->transactionStatus() !== 'I';
                $limit = EventLoop::delay(self::RESET_TIMEOUT, $member->session->close(...));
                $member->session->reset();
            } catch (\Throwable) {
                $member->session->close();
            }
            EventLoop::cancel($limit);
            $member->alone = $member->spoiled = false;
            $this->freed($member);
            if ($isLeftOpen) {
                // The warning comes last, since its callback may need a connection too.
                ($this->warn)(
                    'A transaction was left open on a connection that was given back to the pool, and is rolled back',
                );
            }
        })->ignore();
    }

    /** Tries again after a pause. A permanent failure is repeated only for a waiter: logins may lock the account. */
    private function openAgain(): void
    {
        if (
            $this->queue->count() > 0
            || $this->openings->failure === null
            || TransientFailures::of($this->openings->failure)
        ) {
            $this->growForWaiting();
        }
    }

    private function growForWaiting(): void
    {
        if ($this->queue->count() > 0 || \count($this->members->all) < $this->options->minConnections) {
            $this->grow();
        }
    }

    private function grow(): void
    {
        if (!$this->isOurs()) {
            return;
        }
        $underWay = $this->openings->underWay;
        $open = \count($this->members->all) + $underWay;
        // Queries that can share wait for the sessions that are being tested, which takes little time.
        $waiting = $this->trying > 0 ? $this->queue->alone->count : $this->queue->count();
        $wanted = max(
            $waiting - $underWay,
            $this->options->minConnections - $open,
            $this->queue->count() === 0 ? 1 - $underWay : 0,
        );
        $this->openings->start(min($wanted, $this->most - $open));
    }

    private function opened(Session $session): void
    {
        ++$this->counts->opened;
        $lifetime = $this->options->maxLifetime * (1 - random_int(0, 100_000) / 1e6);
        $member = new PooledSession($session, (int) min(hrtime(true) + $lifetime * 1e9, \PHP_INT_MAX / 2));
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

    /** Fails all waiters if no session is left and the failure is permanent, or no server was ever reached. */
    private function failedToOpen(\Throwable $failure): void
    {
        $this->openings->hold($this->queue->count() > 0);
        if ($this->members->all !== [] || $this->openings->underWay > 0) {
            return;
        }
        $isNoServer = $this->counts->opened === 0
            && $failure instanceof ConnectionFailedException
            && $failure->sqlState === null;
        if ($isNoServer || !TransientFailures::of($failure)) {
            $this->queue->refuse($failure);
        }
    }

    private function lost(PooledSession $member): void
    {
        ++$this->counts->lost;
        $this->members->drop($member);
        $this->growForWaiting();
    }

    /** Schedules the next pass that closes free sessions which are idle for too long or too old. */
    private function sweepLater(): void
    {
        if (
            $this->sweep !== null
            || $this->closed
            || min($this->options->idleTimeout, $this->options->maxLifetime) >= 1e9
        ) {
            return;
        }
        $this->sweep = WeakTimer::after(
            min($this->options->idleTimeout, $this->options->maxLifetime) / 2,
            $this,
            static function (self $self): void {
                $self->sweep = null;
                foreach ($self->members->all as $member) {
                    if (
                        $member->isFree()
                        && (
                            hrtime(true) > $member->until
                            || $self->sinceIdle($member) >= $self->options->idleTimeout
                            && \count($self->members->all) > $self->options->minConnections
                        )
                    ) {
                        $self->members->drop($member);
                    }
                }
                $self->growForWaiting();
                if ($self->members->all !== []) {
                    $self->sweepLater();
                }
            },
        );
    }
}
