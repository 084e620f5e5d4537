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
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\Internal\SessionLender;
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
    private int $testing = 0;

    private bool $closed = false;

    private ?string $sweepTimer = null;

    /** Timer of the next check of shared sessions. */
    private ?string $stallTimer = null;

    private readonly int $process;

    public readonly Counts $counts;

    private readonly PooledSessions $sessions;

    private readonly WaitQueue $queue;

    private readonly SessionOpener $opener;

    public readonly HoldingFibers $holders;

    /** @param \Closure(string): void $warn */
    public function __construct(
        private readonly SessionFactory $sessionFactory,
        private readonly int $maxConnections,
        private readonly PostgresPoolOptions $options,
        private readonly \Closure $warn,
    ) {
        $weak = \WeakReference::create($this);
        $this->opener = new SessionOpener(
            $sessionFactory,
            static fn(Session $session) => $weak->get()?->onOpened($session),
            static fn(\Throwable $failure) => $weak->get()?->onOpenFailed($failure),
            static fn() => $weak->get()?->openAgain(),
        );
        $this->process = (int) getmypid();
        $this->counts = new Counts();
        $this->sessions = new PooledSessions();
        $this->holders = new HoldingFibers();
        $this->queue = new WaitQueue(
            $this->counts,
            $options->acquireTimeout,
            static fn(): \Throwable => $weak->get()?->acquireTimedOut() ?? ConnectionClosedException::pool(),
            static fn() => $weak->get()?->endUnneededReservations(),
        );
    }

    public function take(?Cancellation $cancellation): Session
    {
        $pooled = $this->obtain(true, 0, $cancellation);
        $this->lent[spl_object_id($pooled->session)] = [$pooled, $this->holders->add()];
        if ($pooled->native !== null) {
            $pooled->native->isTimed = false;
        }

        return $pooled->session;
    }

    public function handOver(Session $session): void {}

    public function give(Session $session): void
    {
        [$pooled, $holder] = $this->lent[spl_object_id($session)];
        unset($this->lent[spl_object_id($session)]);
        $this->holders->remove($holder);
        if ($pooled->native !== null) {
            $pooled->native->isTimed = true;
        }
        $this->giveBack($pooled);
    }

    public function warn(string $warning): void
    {
        ($this->warn)($warning);
    }

    /** @return array{inUse: int, idle: int, opening: int, waiting: int} */
    public function statistics(): array
    {
        $idle = \count(array_filter($this->sessions->all, static fn(PooledSession $pooled): bool => $pooled->isFree()));

        return [
            'inUse' => \count($this->sessions->all) - $idle,
            'idle' => $idle,
            'opening' => $this->opener->opening,
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
        $this->opener->close();
        if ($this->sweepTimer !== null) {
            EventLoop::cancel($this->sweepTimer);
        }
        $this->queue->refuse(ConnectionClosedException::pool());
        foreach ($this->sessions->all as $pooled) {
            if ($pooled->isFree()) {
                $this->sessions->drop($pooled);
            }
        }
    }

    /** Closes the pool and all sessions, also those in use. */
    public function kill(): void
    {
        $this->close();
        foreach ($this->sessions->all as $pooled) {
            $pooled->session->stop();
            $pooled->session->close();
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
                'A pool of PostgreSQL connections can not be used in a fork of the process that created it. '
                    . 'Create another one',
            );
        }
    }

    /** Returns a session that is available at once, or null. The session is not lent yet. */
    public function available(bool $exclusive, int $cost): ?PooledSession
    {
        if ($this->closed) {
            return null;
        }
        if ($exclusive) {
            return $this->queue->exclusive->count > 0 ? null : $this->sessions->free();
        }
        if ($this->queue->sharing->count > 0) {
            return null;
        }
        $pooled = $this->sessions->shareable($cost);
        while (
            $pooled !== null
            && $pooled->borrowers > 0
            && $this->sessions->reserved < $this->queue->exclusive->count
        ) {
            $this->sessions->reserve($pooled);
            $pooled = $this->sessions->shareable($cost);
        }
        if ($pooled !== null && $pooled->borrowers > 0) {
            if ($this->stallTimer === null) {
                $this->scheduleStallCheck();
            }
            if (
                \count($this->sessions->all) < $this->maxConnections
                && $this->opener->opening === 0
                && !$pooled->answersSoon($cost)
            ) {
                $this->grow();
            }
        }

        return $pooled;
    }

    /** Waits for an open session and lends it. A session that was idle for long is tested first. */
    public function obtain(bool $exclusive, int $cost, ?Cancellation $cancellation): PooledSession
    {
        $since = hrtime(true);
        for (;;) {
            $this->ensureUsable();
            $left = $this->options->acquireTimeout - (hrtime(true) - $since) / 1e9;
            $pooled = $left > 0 ? $this->available($exclusive, $cost) : null;
            if ($pooled === null) {
                $pooled = $this->await(new WaitingFiber(new Exchange(), $exclusive, $cost, $since), $cancellation);
                if ($pooled->session->isOpen()) {
                    return $pooled;
                }
                // The session has ended since it was lent.
                $this->release($pooled, $cost);
            } elseif (!$this->isStale($pooled) || $this->answersPing($pooled, $exclusive, $left, $cancellation)) {
                $pooled->lend($exclusive, $cost);
                ++$this->counts->acquired;
                if (!$exclusive && $this->queue->sharing->count > 0) {
                    // Queries that can share may have arrived during the test.
                    $this->serve($pooled);
                }

                return $pooled;
            }
        }
    }

    public function enqueue(WaitingFiber $waiter): void
    {
        $this->ensureUsable();
        $waiting = $this->queue->count();
        $open = \count($this->sessions->all);
        // Waiters do not count if a session can be opened for them, or if they can share one that is being tested.
        $willShare = $waiter->isExclusive ? 0 : $this->testing * PooledSession::MAX_SHARING;
        if ($waiting - ($this->maxConnections - $open) - $willShare >= $this->options->maxWaiting) {
            throw PoolTimeoutException::full($waiting);
        }
        $this->queue->add($waiter);
        if ($open < $this->maxConnections) {
            $this->grow();
        }
        if ($waiting === 0) {
            $this->opener->keepLoopRunning(true);
        }
    }

    /** Releases what a fiber was waiting for, because the fiber will not return. */
    public function abandon(Exchange $exchange, ?WaitingFiber $waiter, ?PooledSession $pooled): void
    {
        $pooled ??= $waiter?->pooled;
        if ($pooled === null) {
            if ($waiter !== null && $this->queue->remove($waiter)) {
                $this->endUnneededReservations();
            }
        } elseif ($waiter !== null && !$waiter->isSent) {
            $this->release($pooled, $waiter->cost);
        } else {
            $pooled->native?->abandon($exchange);
            $this->releaseFailed($pooled, $exchange);
        }
    }

    /**
     * Releases the session of a query that failed or was abandoned, unless it was released already.
     *
     * @throws \LogicException in a fork. Each query fails there, and a check before each query would cost too much
     */
    public function releaseFailed(PooledSession $pooled, Exchange $exchange): void
    {
        if ($exchange->cost >= 0) {
            $cost = $exchange->cost;
            $exchange->cost = -1;
            $this->release($pooled, $cost);
        }
        $this->ensureOurs();
    }

    /** Takes a session back from a borrower, and resets it if it can not be used as it is. */
    public function release(PooledSession $pooled, int $cost): void
    {
        $pooled->takeBack($cost);
        if ($pooled->session->transactionStatus() !== 'I' || !$this->sessionFactory->suits($pooled->session)) {
            // Others must not use a transaction that a statement began, or a server that became read-only.
            $pooled->markForReset();
        }
        if ($pooled->borrowers === 0 && ($pooled->needsReset || $pooled->session->inFlight() > 0)) {
            $this->resetInBackground($pooled);
        } else {
            $this->freed($pooled);
        }
    }

    /** Takes a session back from a borrower that had it alone and may have changed it. */
    public function giveBack(PooledSession $pooled): void
    {
        $session = $pooled->session;
        $pooled->takeBack(0);
        if (
            $session->isOpen()
            && ($session->inFlight() > 0 || $session->transactionStatus() !== 'I' || $session->isChanged())
        ) {
            $this->resetInBackground($pooled);
        } else {
            $this->freed($pooled);
        }
    }

    public function isStale(PooledSession $pooled): bool
    {
        return $pooled->borrowers === 0 && $this->sinceIdle($pooled) >= $this->options->validateAfter;
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
        $this->enqueue($waiter);
        $isAwake = false;
        try {
            $this->queue->wait($waiter, $cancellation);
            $isAwake = true;
        } finally {
            if (!$isAwake) {
                $this->abandon($waiter->exchange, $waiter, null);
            }
        }

        return $waiter->pooled ?? throw new \LogicException('A fiber that waits for a session was woken without one');
    }

    /** Ends reservations that no waiter needs any more, after a waiter has left. */
    private function endUnneededReservations(): void
    {
        while (
            $this->sessions->reserved > $this->queue->exclusive->count
            && ($pooled = $this->sessions->anyReserved()) !== null
        ) {
            $this->sessions->unreserve($pooled);
            $this->serve($pooled);
        }
        if (!$this->queue->keepsLoopRunning) {
            $this->opener->keepLoopRunning(false);
        }
    }

    private function acquireTimedOut(): \Throwable
    {
        return PoolTimeoutException::after(
            $this->options->acquireTimeout,
            \count($this->sessions->all),
            $this->opener->opening,
            $this->queue->count(),
            $this->opener->failure,
        );
    }

    /**
     * Releases the session of queries that were answered, before their fibers run.
     *
     * @param list<Exchange> $exchanges
     */
    private function answered(PooledSession $pooled, array $exchanges): void
    {
        $released = false;
        foreach ($exchanges as $exchange) {
            if ($exchange->cost < 0 || !$exchange->done) {
                continue;
            }
            if ($exchange->status !== 'I') {
                $pooled->markForReset();
            } elseif ($exchange->error === null && $exchange->failure === null && $exchange->copy === '') {
                $pooled->takeBack($exchange->cost);
                $exchange->cost = -1;
                $released = true;
            }
        }
        if (!$released) {
            return;
        }
        $pooled->idleChecks = 0;
        if ($pooled->borrowers > 0) {
            if ($this->queue->sharing->count > 0) {
                $this->serve($pooled);
            }
        } elseif ($pooled->needsReset) {
            $this->resetInBackground($pooled);
        } else {
            $this->freed($pooled);
        }
    }

    private function scheduleStallCheck(): void
    {
        $seconds = PooledSession::CHECK_NANOSECONDS / 1e9;
        $this->stallTimer = WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->stallTimer = null;
            $isShared = false;
            foreach ($self->sessions->all as $pooled) {
                $isShared = $isShared || $pooled->borrowers > 1;
                if ($pooled->checkStall() && $self->isOurs()) {
                    // The query may wait for a statement behind it. So it is stopped, and runs again as the last one.
                    $pooled->markForReset();
                    $pooled->native?->postpone();
                }
            }
            if ($isShared) {
                $self->scheduleStallCheck();
            }
        });
    }

    /** Drops a session that is closed or outdated, and lends any other to waiters. */
    private function freed(PooledSession $pooled): void
    {
        $isFree = !$pooled->isExclusive && $pooled->borrowers === 0;
        if (
            !$pooled->session->isOpen()
            || $isFree
            && (
                $this->closed
                || $pooled->session->lastActivity() > $pooled->expiresAt
                || !$this->sessionFactory->suits($pooled->session)
            )
        ) {
            $this->sessions->drop($pooled);
            $this->growForWaiting();

            return;
        }
        if ($this->queue->exclusive->count > 0 || $this->queue->sharing->count > 0) {
            $this->serve($pooled);
        }
        if ($this->sweepTimer === null && $isFree && $pooled->isFree()) {
            $this->scheduleSweep();
        }
    }

    private function serve(PooledSession $pooled): void
    {
        if ($pooled->reserved && $pooled->borrowers === 0) {
            $this->sessions->unreserve($pooled);
        }
        while (!$pooled->isExclusive && ($waiter = $this->queue->next($pooled)) !== null) {
            $this->lendTo($waiter, $pooled);
        }
        if ($pooled->borrowers > 0 && !$pooled->isExclusive) {
            if (!$pooled->reserved && $this->sessions->reserved < $this->queue->exclusive->count) {
                $this->sessions->reserve($pooled);
            }
            if ($this->stallTimer === null && $pooled->borrowers > 1) {
                $this->scheduleStallCheck();
            }
        }
        if ($this->sessions->reserved > $this->queue->exclusive->count) {
            $this->endUnneededReservations();
        }
    }

    /** Lends the session to a waiter: sends its statement if that can be sent at once, else wakes its fiber. */
    private function lendTo(WaitingFiber $waiter, PooledSession $pooled): void
    {
        $this->queue->remove($waiter);
        $waiter->pooled = $pooled;
        $pooled->lend($waiter->isExclusive, $waiter->cost);
        ++$this->counts->acquired;
        $this->counts->waited((hrtime(true) - $waiter->since) / 1e9);
        if ($waiter->sql !== null) {
            try {
                $waiter->isSent = $pooled->native?->send($waiter->exchange, $waiter->sql, $waiter->parameters) ?? false;
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
        if (!$this->queue->keepsLoopRunning) {
            $this->opener->keepLoopRunning(false);
        }
    }

    private function sinceIdle(PooledSession $pooled): float
    {
        return (hrtime(true) - $pooled->session->lastActivity()) / 1e9;
    }

    /** Whether an idle session answers a ping. If not, it is dropped. A cancellation does not stop the ping. */
    private function answersPing(
        PooledSession $pooled,
        bool $exclusive,
        float $seconds,
        ?Cancellation $cancellation,
    ): bool {
        $pooled->isExclusive = true;
        $this->sessions->unreserve($pooled);
        $shared = $exclusive ? 0 : 1;
        $this->testing += $shared;
        $trial = async(function () use ($pooled, $shared, $seconds): void {
            $late = EventLoop::delay(min($seconds, self::PING_TIMEOUT), fn() => $this->sessions->drop($pooled));
            try {
                $pooled->session->ping();
            } catch (\Throwable) {
                $this->sessions->drop($pooled);
            }
            EventLoop::cancel($late);
            $this->testing -= $shared;
        });
        try {
            $trial->await($cancellation);
        } catch (\Throwable $interruption) {
            $trial->finally(function () use ($pooled): void {
                $pooled->isExclusive = false;
                $this->freed($pooled);
            })->ignore();
            throw $interruption;
        }
        $pooled->isExclusive = false;
        if (!$pooled->session->isOpen()) {
            $this->growForWaiting();

            return false;
        }

        return true;
    }

    /** Resets a session that was given back, before others get it. */
    private function resetInBackground(PooledSession $pooled): void
    {
        $pooled->isExclusive = true;
        $this->sessions->unreserve($pooled);
        async(function () use ($pooled): void {
            $isLeftOpen = false;
            $limit = '';
            try {
                $pooled->session->settle();
                $isLeftOpen = $pooled->session->isOpen() && $pooled->session->transactionStatus() !== 'I';
                $limit = EventLoop::delay(self::RESET_TIMEOUT, $pooled->session->close(...));
                $pooled->session->reset();
            } catch (\Throwable) {
                $pooled->session->close();
            }
            EventLoop::cancel($limit);
            $pooled->isExclusive = $pooled->needsReset = false;
            $this->freed($pooled);
            if ($isLeftOpen) {
                // The warning comes last, since its callback may need a connection too.
                ($this->warn)(
                    'A transaction was left open on a connection that was released to the pool. It was rolled back',
                );
            }
        })->ignore();
    }

    /** Tries again after a pause. A permanent failure is repeated only for a waiter: logins may lock the account. */
    private function openAgain(): void
    {
        if (
            $this->queue->count() > 0
            || $this->opener->failure === null
            || TransientFailures::of($this->opener->failure)
        ) {
            $this->growForWaiting();
        }
    }

    private function growForWaiting(): void
    {
        if ($this->queue->count() > 0 || \count($this->sessions->all) < $this->options->minConnections) {
            $this->grow();
        }
    }

    private function grow(): void
    {
        if (!$this->isOurs()) {
            return;
        }
        $opening = $this->opener->opening;
        $open = \count($this->sessions->all) + $opening;
        // Queries that can share wait for the sessions that are being tested, which takes little time.
        $waiting = $this->testing > 0 ? $this->queue->exclusive->count : $this->queue->count();
        $wanted = max(
            $waiting - $opening,
            $this->options->minConnections - $open,
            $this->queue->count() === 0 ? 1 - $opening : 0,
        );
        $this->opener->start(min($wanted, $this->maxConnections - $open));
    }

    private function onOpened(Session $session): void
    {
        ++$this->counts->opened;
        $lifetime = $this->options->maxLifetime * (1 - random_int(0, 100_000) / 1e6);
        $pooled = new PooledSession($session, (int) min(hrtime(true) + $lifetime * 1e9, \PHP_INT_MAX / 2));
        $this->sessions->all[] = $pooled;
        $weak = \WeakReference::create($this);
        $session->onClose(static function (?\Throwable $reason) use ($weak, $pooled): void {
            if ($reason !== null) {
                $weak->get()?->onLost($pooled);
            }
        });
        if ($pooled->native !== null) {
            $pooled->native->isTimed = true;
            $pooled->native->onAnswered(static fn(array $exchanges) => $weak->get()?->answered($pooled, $exchanges));
        }
        $this->freed($pooled);
        $this->growForWaiting();
    }

    /** Fails all waiters if no session is left and the failure is permanent, or no server was ever reached. */
    private function onOpenFailed(\Throwable $failure): void
    {
        $this->opener->keepLoopRunning($this->queue->count() > 0);
        if ($this->sessions->all !== [] || $this->opener->opening > 0) {
            return;
        }
        $isNoServer = $this->counts->opened === 0
            && $failure instanceof ConnectionFailedException
            && $failure->sqlState === null;
        if ($isNoServer || !TransientFailures::of($failure)) {
            $this->queue->refuse($failure);
        }
    }

    private function onLost(PooledSession $pooled): void
    {
        ++$this->counts->lost;
        $this->sessions->drop($pooled);
        $this->growForWaiting();
    }

    /** Schedules the next pass that closes free sessions which are idle for too long or too old. */
    private function scheduleSweep(): void
    {
        if (
            $this->sweepTimer !== null
            || $this->closed
            || min($this->options->idleTimeout, $this->options->maxLifetime) >= 1e9
        ) {
            return;
        }
        $this->sweepTimer = WeakTimer::after(
            min($this->options->idleTimeout, $this->options->maxLifetime) / 2,
            $this,
            static function (self $self): void {
                $self->sweepTimer = null;
                foreach ($self->sessions->all as $pooled) {
                    if (
                        $pooled->isFree()
                        && (
                            hrtime(true) > $pooled->expiresAt
                            || $self->sinceIdle($pooled) >= $self->options->idleTimeout
                            && \count($self->sessions->all) > $self->options->minConnections
                        )
                    ) {
                        $self->sessions->drop($pooled);
                    }
                }
                $self->growForWaiting();
                if ($self->sessions->all !== []) {
                    $self->scheduleSweep();
                }
            },
        );
    }
}
