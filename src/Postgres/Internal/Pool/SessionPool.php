<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CallStack;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\SelfWaitException;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\Protocol\Exchange;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\Internal\SessionLender;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;

use function Amp\async;

/**
 * The sessions of a pool, and the fibers that wait for them.
 *
 * A session is lent exclusively to one borrower, or shared by queries that are known to be short
 * ({@see KnownStatements}). Waiting fibers are in the {@see WaitQueue}. For each borrower that waits for an exclusive
 * session, the pool reserves a shared session if there is one. No further query is sent on a reserved session, so the
 * session is free as soon as its current queries are done.
 *
 * Usually, a query of {@see QueryRunner} uses a session only until its answer is read. As soon as the answer is read,
 * the pool sends the next waiting query on that session. After that, the fiber of the answered query is resumed.
 */
final class SessionPool implements SessionLender
{
    /** A session that is lost within this number of seconds causes a pause of PAUSE_SECONDS. */
    private const SHORT_LIFETIME = 1.0;

    private const PAUSE_SECONDS = 0.2;

    /** Whether new calls are refused. Only this class writes the property. */
    public bool $isClosed = false;

    private bool $isKilled = false;

    /** @var array<int, PooledSession> sessions lent until {@see release()}, by object id of the session */
    private array $lent = [];

    /**
     * Number of accepted calls that wait for a ping, or for the next attempt of their transaction. Such a call may have
     * no session and no place in the queue, so close() checks this number, too.
     */
    private int $pausedCalls = 0;

    /** Number of sessions that are being pinged for queries that can share them. */
    private int $pingedForSharing = 0;

    private ?string $sweepTimer = null;

    /** Timer of the pause after a session was lost early. During the pause, sessions are opened only for waiters. */
    private ?string $pauseTimer = null;

    private ?string $stallTimer = null;

    private readonly int $ownerPid;

    public readonly OwnLoop $loop;

    private readonly PooledSessions $sessions;

    private readonly WaitQueue $queue;

    private readonly SessionOpener $opener;

    public readonly HoldingFunctions $holders;

    /**
     * @var array<int, true> object ids of sessions lent for a transaction, stream, COPY or script, until they are
     *     detached. Fibers that hold such a session may use the pool even after close()
     */
    private array $callSessions = [];

    private readonly FiberQueue $closing;

    /** @param \Closure(string): mixed $warn */
    public function __construct(
        private readonly SessionFactory $sessionFactory,
        private readonly int $maxConnections,
        private readonly PostgresPoolOptions $options,
        private readonly \Closure $warn,
        public readonly PoolCounters $counts = new PoolCounters(),
    ) {
        $weak = \WeakReference::create($this);
        $this->opener = new SessionOpener(
            $sessionFactory,
            static fn(PipelinedSession $session) => $weak->get()?->onOpened($session),
            static fn(\Throwable $failure) => $weak->get()?->onOpenFailed($failure),
            static fn() => $weak->get()?->retryOpening(),
        );
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
        $this->sessions = new PooledSessions();
        $this->holders = new HoldingFunctions();
        $this->closing = new FiberQueue();
        $this->queue = new WaitQueue(
            $this->counts,
            $options->acquireTimeout,
            static fn(): \Throwable => $weak->get()?->acquireTimedOut() ?? ConnectionClosedException::pool(),
            static fn() => $weak->get()?->endUnneededReservations(),
        );
    }

    public function acquire(?Cancellation $cancellation): PipelinedSession
    {
        $session = $this->borrow($cancellation);
        $this->callSessions[spl_object_id($session)] = true;

        return $session;
    }

    /** Lends a session. Unlike {@see acquire()}, this method does not let the fiber use the pool after close(). */
    public function borrow(?Cancellation $cancellation): PipelinedSession
    {
        FiberSwitch::ensurePossible();
        if ($this->isClosed) {
            $this->ensureAccepts();
        }

        return $this->lend($cancellation);
    }

    public function acquireAgain(Session $session, float $pause, ?Cancellation $cancellation): PipelinedSession
    {
        ++$this->pausedCalls;
        try {
            $this->release($session);
            (new Condition())->waitFor($pause, $cancellation);
            $session = $this->lend($cancellation);
            $this->callSessions[spl_object_id($session)] = true;

            return $session;
        } finally {
            --$this->pausedCalls;
            if ($this->isClosed) {
                $this->closeUnneeded();
            }
        }
    }

    public function detachFromFiber(Session $session): void
    {
        $this->holders->remove($session);
        unset($this->callSessions[spl_object_id($session)]);
    }

    public function release(Session $session): void
    {
        $this->detachFromFiber($session);
        $pooled = $this->lent[spl_object_id($session)];
        unset($this->lent[spl_object_id($session)]);
        $pooled->session->isTimed = true;
        $this->takeBackExclusive($pooled);
    }

    public function warn(string $warning): void
    {
        ($this->warn)($warning);
    }

    /** @return array<string, int|float> by the names that {@see PostgresPool::statistics()} describes */
    public function statistics(): array
    {
        $idle = \count($this->sessions->free());

        return [
            'in_use' => \count($this->sessions->all) - $idle,
            'max' => $this->maxConnections,
            'idle' => $idle,
            'opening' => $this->opener->openingCount,
            'waiting' => $this->queue->count,
            'acquired_total' => $this->counts->acquired,
            'timed_out_total' => $this->counts->timedOut,
            'opened_total' => $this->counts->opened,
            'lost_total' => $this->counts->lost,
            ...$this->counts->waits->statistics('wait_seconds'),
        ];
    }

    /** Throws, and changes nothing, if close() would wait for a connection or a statement of the current fiber. */
    public function refuseSelfWait(QueryRunner $statements): void
    {
        if ($this->isKilled || !$this->belongsToThisProcess()) {
            return;
        }
        if ($this->holders->includesCurrent()) {
            throw SelfWaitException::ofClose(
                'This fiber has a connection of the pool',
                'Release the connection or leave the transaction first',
            );
        }
        if (CallStack::hasCallOf($statements)) {
            throw SelfWaitException::ofClose('A statement of the pool calls close()');
        }
    }

    /** Refuses new calls, and waits until the accepted ones have ended and all sessions are closed. */
    public function close(?Cancellation $cancellation): void
    {
        $this->refuseCalls();
        if (!$this->belongsToThisProcess()) {
            $this->kill();
        }
        while (!$this->hasEnded()) {
            $this->closing->waitOrKill($cancellation, $this->kill(...), $this);
        }
    }

    /** Refuses new calls, and closes each session as soon as no accepted call needs it. */
    public function refuseCalls(): void
    {
        if ($this->isClosed) {
            return;
        }
        $this->isClosed = true;
        foreach ([$this->sweepTimer, $this->pauseTimer] as $timer) {
            $this->loop->cancel($timer);
        }
        $this->sweepTimer = $this->pauseTimer = null;
        $this->closeFree();
        $this->closeUnneeded();
    }

    public function kill(): void
    {
        $this->isKilled = true;
        $this->refuseCalls();
        $reason = ConnectionClosedException::pool();
        $this->queue->failAll($this->loop->isCurrent() ? $reason : ConnectionLostException::while(OwnLoop::REPLACED));
        foreach ($this->sessions->all as $pooled) {
            $pooled->session->stop();
            $this->sessions->drop($pooled, $reason);
        }
        $this->closeUnneeded();
    }

    public function belongsToThisProcess(): bool
    {
        return $this->ownerPid === getmypid();
    }

    public function ensureSameProcess(): void
    {
        if ($this->ownerPid !== getmypid()) {
            throw self::usedInFork();
        }
    }

    /** Throws in a fork, after kill(), and after close() unless the fiber is within an accepted call. */
    public function ensureAccepts(): void
    {
        if ($this->isClosed && ($this->isKilled || !$this->holders->currentHoldsAny($this->callSessions))) {
            throw ConnectionClosedException::pool();
        }
        $this->ensureSameProcess();
    }

    /** Returns a session to lend now; null if the caller must wait. May reserve sessions, or start to open others. */
    public function chooseSession(bool $exclusive, int $cost): ?PooledSession
    {
        if ($exclusive) {
            return $this->queue->exclusive->count > 0 ? null : $this->sessions->findFree();
        }
        if ($this->queue->sharing->count > 0) {
            return null;
        }
        $pooled = $this->sessions->findShareable($cost);
        while (
            $pooled !== null
            && $pooled->borrowers > 0
            && $this->sessions->reservedCount < $this->queue->exclusive->count
        ) {
            $this->sessions->reserve($pooled);
            $pooled = $this->sessions->findShareable($cost);
        }
        if ($pooled !== null && $pooled->borrowers > 0) {
            if ($this->stallTimer === null) {
                $this->scheduleStallCheck();
            }
            if (
                \count($this->sessions->all) < $this->maxConnections
                && $this->opener->openingCount === 0
                && !$pooled->answersSoon($cost)
            ) {
                $this->openMore();
            }
        }

        return $pooled;
    }

    /** Waits for an open session and lends it. A stale session is pinged first: {@see isStale()}. */
    public function acquirePooled(bool $exclusive, int $cost, ?Cancellation $cancellation): PooledSession
    {
        $since = hrtime(true);
        $unanswered = 0;
        for (;;) {
            $this->ensureUsable();
            $left = $this->options->acquireTimeout - (hrtime(true) - $since) / 1e9;
            if ($left <= 0 && $unanswered > 0) {
                ++$this->counts->timedOut;
                throw PoolTimeoutException::unanswered(
                    $this->options->acquireTimeout,
                    $this->sessionFactory->options->hosts,
                    $unanswered,
                );
            }
            $pooled = $left > 0 ? $this->chooseSession($exclusive, $cost) : null;
            if ($pooled === null) {
                $pooled = $this->await(new WaitingFiber(new Exchange(), $exclusive, $cost, $since), $cancellation);
                if ($pooled->session->isOpen()) {
                    return $pooled;
                }
                // The session ended after it had been lent to this fiber, and before the fiber was resumed.
                $this->takeBack($pooled, $cost);
            } elseif ($this->isStale($pooled) && !$this->answersPing($pooled, $exclusive, $left, $cancellation)) {
                ++$unanswered;
            } else {
                $pooled->lend($exclusive, $cost);
                ++$this->counts->acquired;
                if (!$exclusive && $this->queue->sharing->count > 0) {
                    // Further queries that can share the session may have arrived during the ping.
                    $this->lendToWaiters($pooled);
                }

                return $pooled;
            }
        }
    }

    /**
     * Adds a waiter, and starts to open sessions.
     *
     * @throws PoolTimeoutException when maxWaiting allows no more waiters
     */
    public function enqueue(WaitingFiber $waiter): void
    {
        $this->ensureUsable();
        $waiting = $this->queue->count;
        $open = \count($this->sessions->all);
        // maxWaiting does not count waiters for which a session can be opened, or that will share a pinged session.
        $willShare = $waiter->isExclusive ? 0 : $this->pingedForSharing * PooledSession::MAX_SHARING;
        $counted = $waiting - ($this->maxConnections - $open) - $willShare;
        if ($counted >= $this->options->maxWaiting) {
            throw PoolTimeoutException::full($counted);
        }
        $this->queue->add($waiter);
        if ($open < $this->maxConnections) {
            $this->openMore();
        }
        if ($waiting === 0) {
            $this->opener->keepLoopRunning(true);
        }
    }

    /**
     * Cleans up after a fiber that was interrupted or destroyed while it waited for a session or for an answer. Removes
     * the fiber from the queue, or releases the session that was lent to it.
     */
    public function abandon(Exchange $exchange, ?WaitingFiber $waiter, ?PooledSession $pooled): void
    {
        $pooled ??= $waiter?->pooled;
        if ($pooled === null) {
            if ($waiter !== null && $this->queue->remove($waiter)) {
                $this->endUnneededReservations();
            }
        } elseif ($waiter !== null && !$waiter->isSent) {
            $this->takeBack($pooled, $waiter->cost);
        } else {
            $pooled->session->pipeline->abandon($exchange, null);
            $this->ensureTakenBack($pooled, $exchange);
        }
    }

    /**
     * Takes back the session of a query that failed, was abandoned or left a transaction open, unless
     * {@see onAnswered()} has already taken the session back.
     */
    public function ensureTakenBack(PooledSession $pooled, Exchange $exchange): void
    {
        if ($exchange->cost >= 0) {
            $cost = $exchange->cost;
            $exchange->cost = -1;
            $this->takeBack($pooled, $cost);
        }
    }

    /**
     * Takes a session back after a statement that does not change session state. When no borrower is left, the pool
     * resets the session if a transaction is open, a statement is in flight, or the server has refused a write. After
     * the reset, the pool closes a session that still can't write.
     */
    public function takeBack(PooledSession $pooled, int $cost): void
    {
        $pooled->takeBack($cost);
        if ($pooled->session->transactionStatus() !== 'I' || $pooled->session->pipeline->conversation->isUnsuitable) {
            // No further borrower may get a session that has an open transaction or is not suitable.
            $pooled->markForReset();
        }
        if ($pooled->borrowers === 0 && ($pooled->needsReset || $pooled->session->inFlight() > 0)) {
            $this->resetInBackground($pooled);
        } else {
            $this->makeAvailable($pooled);
        }
    }

    /** Takes a session back from a borrower that had it exclusively and may have changed session state. */
    public function takeBackExclusive(PooledSession $pooled): void
    {
        $session = $pooled->session;
        $pooled->takeBack(0);
        if (
            $session->isOpen()
            && ($session->inFlight() > 0
                || $session->transactionStatus() !== 'I'
                || $session->changes->hasAny
                || $session->pipeline->conversation->isUnsuitable)
        ) {
            $this->resetInBackground($pooled);
        } else {
            $this->makeAvailable($pooled);
        }
    }

    /** Returns whether the session has been idle so long that the pool must ping it before use. */
    public function isStale(PooledSession $pooled): bool
    {
        return $pooled->borrowers === 0 && $pooled->idleSeconds() >= $this->options->validateAfter;
    }

    private function lend(?Cancellation $cancellation): PipelinedSession
    {
        $pooled = $this->acquirePooled(true, 0, $cancellation);
        if (!$this->belongsToThisProcess()) {
            $this->takeBackExclusive($pooled);
            throw self::usedInFork(); // the fork runs a copy of the waiting fiber; the parent's fiber gets the session
        }
        $this->lent[spl_object_id($pooled->session)] = $pooled;
        $this->holders->add($pooled->session);
        $pooled->session->isTimed = false;

        return $pooled->session;
    }

    /** After close(), closes all free sessions if no accepted call may need one. Resumes close() if all are closed. */
    private function closeUnneeded(): void
    {
        if (!$this->isKilled && $this->mayNeedSessions()) {
            return;
        }
        $this->opener->cancel();
        $this->closeFree();
        if ($this->hasEnded()) {
            $this->closing->wakeAll();
        }
    }

    private function mayNeedSessions(): bool
    {
        return $this->callSessions !== [] || $this->pausedCalls > 0 || $this->queue->count > 0;
    }

    private function hasEnded(): bool
    {
        return $this->isKilled
            || !$this->mayNeedSessions()
            && $this->lent === []
            && $this->sessions->all === []
            && $this->opener->openingCount === 0;
    }

    private function closeFree(): void
    {
        array_map($this->sessions->drop(...), $this->sessions->free());
    }

    private function ensureUsable(): void
    {
        if ($this->isKilled || $this->ownerPid !== getmypid()) {
            throw $this->isKilled ? ConnectionClosedException::pool() : self::usedInFork();
        }
    }

    private static function usedInFork(): \LogicException
    {
        return new \LogicException(
            'A pool of PostgreSQL connections can not be used in a fork of the process that created it. '
                . 'Create another pool in the fork',
        );
    }

    private function await(WaitingFiber $waiter, ?Cancellation $cancellation): PooledSession
    {
        $cancellation?->throwIfRequested();
        $this->enqueue($waiter);
        $isResumed = false;
        try {
            $this->queue->wait($waiter, $cancellation);
            $isResumed = true;
        } finally {
            if (!$isResumed) {
                $this->abandon($waiter->exchange, $waiter, null);
            }
        }

        return $waiter->session();
    }

    private function endUnneededReservations(): void
    {
        while (
            $this->sessions->reservedCount > $this->queue->exclusive->count
            && ($pooled = $this->sessions->findReserved()) !== null
        ) {
            $this->sessions->unreserve($pooled);
            $this->lendToWaiters($pooled);
        }
        if ($this->queue->count === 0) {
            $this->opener->keepLoopRunning(false);
        }
        if ($this->isClosed) {
            $this->closeUnneeded();
        }
    }

    private function acquireTimedOut(): \Throwable
    {
        return PoolTimeoutException::after(
            $this->options->acquireTimeout,
            $this->sessionFactory->options->hosts,
            \count($this->sessions->all),
            $this->sessions->unconfirmedCount(),
            $this->opener->openingCount,
            $this->queue->count - 1, // without the waiter that has timed out
            $this->opener->failure,
        );
    }

    /** @param list<Exchange> $exchanges done or progressed exchanges, whose fibers are resumed after this call */
    private function onAnswered(PooledSession $pooled, array $exchanges): void
    {
        $released = false;
        foreach ($exchanges as $exchange) {
            if ($exchange->cost < 0 || !$exchange->done) {
                continue;
            }
            if ($exchange->status !== 'I') {
                $pooled->markForReset();
            } elseif (
                $exchange->serverError === null
                && $exchange->waitFailure === null
                && $exchange->copyResponse === ''
            ) {
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
                $this->lendToWaiters($pooled);
            }
        } elseif ($pooled->needsReset) {
            $this->resetInBackground($pooled);
        } else {
            $this->makeAvailable($pooled);
        }
    }

    private function scheduleStallCheck(): void
    {
        $seconds = PooledSession::CHECK_NANOSECONDS / 1e9;
        $this->stallTimer = WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->stallTimer = null;
            if ($self->belongsToThisProcess() && $self->sessions->postponeStalled()) {
                $self->scheduleStallCheck();
            }
        });
    }

    /** Lends a session to waiters. Drops the session instead if it has ended, or is free and too old or unsuitable. */
    private function makeAvailable(PooledSession $pooled): void
    {
        $isFree = !$pooled->isExclusive && $pooled->borrowers === 0;
        if (
            !$pooled->session->isOpen()
            || $isFree
            && (
                $pooled->session->pipeline->lastReceived > $pooled->expiresAt
                || $pooled->session->pipeline->conversation->isUnsuitable
            )
        ) {
            $this->sessions->drop($pooled);
            $this->adjustSessions();

            return;
        }
        if ($this->queue->count > 0) {
            $this->lendToWaiters($pooled);
        }
        if ($this->sweepTimer === null && $isFree && $pooled->isFree()) {
            $this->isClosed ? $this->closeUnneeded() : $this->scheduleSweep();
        }
    }

    private function lendToWaiters(PooledSession $pooled): void
    {
        if ($pooled->isReserved && $pooled->borrowers === 0) {
            $this->sessions->unreserve($pooled);
        }
        while (!$pooled->isExclusive && ($waiter = $this->queue->next($pooled)) !== null) {
            $this->lendToWaiter($waiter, $pooled);
        }
        if ($pooled->borrowers > 0 && !$pooled->isExclusive) {
            if (!$pooled->isReserved && $this->sessions->reservedCount < $this->queue->exclusive->count) {
                $this->sessions->reserve($pooled);
            }
            if ($this->stallTimer === null && $pooled->borrowers > 1) {
                $this->scheduleStallCheck();
            }
        }
        if ($this->sessions->reservedCount > $this->queue->exclusive->count) {
            $this->endUnneededReservations();
        }
    }

    /** Lends a session to a waiter, and sends the waiter's statement. If nothing was sent, wakes the waiter's fiber. */
    private function lendToWaiter(WaitingFiber $waiter, PooledSession $pooled): void
    {
        $this->queue->remove($waiter);
        $waiter->pooled = $pooled;
        $pooled->lend($waiter->isExclusive, $waiter->cost);
        ++$this->counts->acquired;
        $this->counts->waits->add((hrtime(true) - $waiter->since) / 1e9);
        if ($waiter->sql !== null) {
            try {
                $waiter->isSent = $pooled->session->send($waiter->exchange, $waiter->sql, $waiter->parameters);
            } catch (\Throwable) {
                // A value could not be encoded. The waiter's fiber encodes the values again, and so gets the exception.
                $waiter->isSent = false;
            }
        }
        if ($waiter->isSent) {
            $waiter->exchange->cost = $waiter->cost;
        } else {
            EventLoop::queue($waiter->exchange->wake(...));
        }
        if ($this->queue->count === 0) {
            $this->opener->keepLoopRunning(false);
        }
    }

    /**
     * Pings an idle session, and returns whether it answers. Closes the session if no answer arrives within
     * `$secondsLeft`, or within one second if that is less. After a cancellation, the ping goes on in the background.
     */
    private function answersPing(
        PooledSession $pooled,
        bool $exclusive,
        float $secondsLeft,
        ?Cancellation $cancellation,
    ): bool {
        $pooled->isExclusive = true;
        $this->sessions->unreserve($pooled);
        $shared = $exclusive ? 0 : 1;
        $this->pingedForSharing += $shared;
        $ping = async(function () use ($pooled, $shared, $secondsLeft): void {
            $pooled->ping($secondsLeft);
            if (!$pooled->session->isOpen()) {
                $this->sessions->drop($pooled);
            }
            $this->pingedForSharing -= $shared;
        });
        try {
            ++$this->pausedCalls;
            $ping->await($cancellation);
        } catch (\Throwable $interruption) {
            $ping->finally(function () use ($pooled): void {
                $pooled->isExclusive = false;
                $this->makeAvailable($pooled);
            })->ignore();
            throw $interruption;
        } finally {
            --$this->pausedCalls;
        }
        $pooled->isExclusive = false;
        if (!$pooled->session->isOpen()) {
            $this->adjustSessions();

            return false;
        }

        return true;
    }

    private function resetInBackground(PooledSession $pooled): void
    {
        $pooled->isExclusive = true;
        $this->sessions->unreserve($pooled);
        async(function () use ($pooled): void {
            $wasInTransaction = $pooled->reset();
            $this->makeAvailable($pooled);
            if ($wasInTransaction) {
                // The warning comes last, because the code that handles it may need a connection of this pool.
                ($this->warn)(
                    'A transaction was left open on a connection that was released to the pool. It was rolled back. '
                        . 'Use transaction() and not a BEGIN statement: each statement of the pool may get another'
                        . ' connection, which the pool takes back immediately',
                );
            }
        })->ignore();
    }

    /**
     * Opens sessions again after the pause that follows a failure. After a permanent failure, opens sessions only for
     * waiters and not for minConnections, because repeated failed logins may lock the account.
     */
    private function retryOpening(): void
    {
        if (
            $this->isClosed
            || $this->queue->count > 0
            || $this->opener->failure === null
            || TransientFailures::includes($this->opener->failure)
        ) {
            $this->adjustSessions();
        }
    }

    /** Opens sessions if fibers wait or fewer than minConnections are open. After close(), closes unneeded sessions. */
    private function adjustSessions(): void
    {
        if ($this->queue->count > 0 || \count($this->sessions->all) < $this->minConnections()) {
            $this->openMore();
        } elseif ($this->isClosed) {
            $this->closeUnneeded();
        }
    }

    private function minConnections(): int
    {
        return $this->isClosed || $this->pauseTimer !== null ? 0 : $this->options->minConnections;
    }

    private function openMore(): void
    {
        if (!$this->belongsToThisProcess()) {
            $this->queue->failAll(self::usedInFork());

            return;
        }
        $opening = $this->opener->openingCount;
        $open = \count($this->sessions->all) + $opening;
        // Queries that can share a session after its ping need no further session, because a ping takes little time.
        $waiting = $this->pingedForSharing > 0 ? $this->queue->exclusive->count : $this->queue->count;
        $wanted = max(
            $waiting - $opening,
            $this->minConnections() - $open,
            $this->queue->count === 0 ? 1 - $opening : 0,
        );
        $this->opener->start(min($wanted, $this->maxConnections - $open));
    }

    private function onOpened(PipelinedSession $session): void
    {
        ++$this->counts->opened;
        $lifetime = $this->options->maxLifetime * (1 - random_int(0, 100_000) / 1e6);
        $pooled = new PooledSession($session, (int) min(hrtime(true) + $lifetime * 1e9, \PHP_INT_MAX / 2));
        $this->sessions->all[] = $pooled;
        $weak = \WeakReference::create($this);
        $openedAt = hrtime(true);
        $session->pipeline->onClose(static function (?\Throwable $reason) use ($weak, $pooled, $openedAt): void {
            if ($reason !== null) {
                $weak->get()?->onLost($pooled, (hrtime(true) - $openedAt) / 1e9);
            }
        });
        $session->isTimed = true;
        $session->pipeline->onAnswered(static fn(array $exchanges) => $weak->get()?->onAnswered($pooled, $exchanges));
        $this->makeAvailable($pooled);
        $this->adjustSessions();
    }

    /** Fails all waiters if the pool has no session, and the failure is permanent or no server was ever reached. */
    private function onOpenFailed(\Throwable $failure): void
    {
        $this->opener->keepLoopRunning($this->queue->count > 0);
        if ($this->sessions->all !== [] || $this->opener->openingCount > 0) {
            return;
        }
        $wasNeverReached = $this->counts->opened === 0 && TransientFailures::isUnreachable($failure);
        if ($wasNeverReached || !TransientFailures::includes($failure)) {
            $this->queue->failAll($failure);
        }
    }

    /** @param float $lifetime seconds from login to loss. If it is short, a pause prevents a loop of logins */
    private function onLost(PooledSession $pooled, float $lifetime): void
    {
        ++$this->counts->lost;
        $this->sessions->drop($pooled);
        if ($lifetime < self::SHORT_LIFETIME && $this->pauseTimer === null && !$this->isClosed) {
            $this->pauseTimer = WeakTimer::after(self::PAUSE_SECONDS, $this, static function (self $self): void {
                $self->pauseTimer = null;
                $self->adjustSessions();
            });
        }
        $this->adjustSessions();
    }

    private function scheduleSweep(): void
    {
        if ($this->sweepTimer !== null || min($this->options->idleTimeout, $this->options->maxLifetime) >= 1e9) {
            return;
        }
        $this->sweepTimer = WeakTimer::after(
            min($this->options->idleTimeout, $this->options->maxLifetime) / 2,
            $this,
            static function (self $self): void {
                $self->sweepTimer = null;
                $self->sessions->dropExpired($self->options->idleTimeout, $self->options->minConnections);
                $self->adjustSessions();
                if ($self->sessions->all !== []) {
                    $self->scheduleSweep();
                }
            },
        );
    }
}
