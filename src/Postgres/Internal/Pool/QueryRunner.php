<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Postgres\Internal\Protocol\Exchange;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Result;

/** Runs the statements of PostgresPool::query() and execute(), whose callers borrow no connection. */
final readonly class QueryRunner
{
    /** Depth to which arrays of parameters are searched for objects. Deeper arrays are assumed to contain objects. */
    private const MAX_SEARCH_DEPTH = 32;

    private KnownStatements $statements;

    public function __construct(private SessionPool $pool)
    {
        $this->statements = new KnownStatements();
    }

    /** @param list<mixed> $parameters */
    public function run(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        FiberSwitch::ensurePossible();
        if ($this->pool->isClosed) {
            $this->pool->ensureAccepts();
        }
        $statement = $this->statements->find($sql);
        if ($statement === null || !$statement->isPlain) {
            return $this->runExclusively($sql, $parameters, $cancellation);
        }
        $holders = $this->pool->holders;
        $exclusive = !$statement->mayShare || $holders->connectionCount > 0 && $holders->includesCurrent();
        if ($cancellation === null && !self::mayCallUserCode($parameters)) {
            return $this->send($statement, $exclusive, $sql, $parameters);
        }

        $cost = $statement->cost;
        $pooled = $this->pool->acquirePooled($exclusive, $cost, $cancellation);

        return $this->runOn($pooled, $statement, $cost, $sql, $parameters, $cancellation);
    }

    public static function refuseTransaction(string $sql): void
    {
        if (SessionChanges::beginsTransaction($sql)) {
            throw new \LogicException(
                'A statement of a pool can not begin a transaction, because the pool takes the connection back after'
                    . ' the statement. Use transaction(), or acquire() a connection',
            );
        }
    }

    /**
     * Runs a statement that is unknown or not {@see KnownStatement::$isPlain}, on an exclusive session.
     *
     * @param list<mixed> $parameters
     */
    private function runExclusively(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): Result {
        self::refuseTransaction($sql);
        $pooled = $this->pool->acquirePooled(true, 0, $cancellation);
        try {
            $result = $pooled->session->query($sql, $parameters, $cancellation);
            $this->statements->learn($sql, $pooled->session->lastQueryNanoseconds());

            return $result;
        } finally {
            $this->pool->takeBackExclusive($pooled);
        }
    }

    /**
     * Sends the statement as soon as a session is available, and suspends until the answer arrives.
     *
     * @param list<mixed> $parameters
     */
    private function send(
        KnownStatement $statement,
        bool $exclusive,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
    ): Result {
        $pool = $this->pool;
        $cost = $statement->cost;
        $exchange = new Exchange();
        // A statement that writes never shares a session, so its time on the server is not needed.
        $exchange->isTimed = $statement->isShareableRead;
        $waiter = null;
        $pooled = $pool->chooseSession($exclusive, $cost);
        if ($pooled === null) {
            $waiter = new WaitingFiber($exchange, $exclusive, $cost, hrtime(true), $sql, $parameters);
            $pool->enqueue($waiter);
        } elseif ($pool->isStale($pooled) || !$pooled->session->send($exchange, $sql, $parameters)) {
            $pooled = $pool->acquirePooled($exclusive, $cost, null);

            return $this->runOn($pooled, $statement, $cost, $sql, $parameters, null);
        } else {
            $pooled->lend($exclusive, $exchange->cost = $cost);
            ++$pool->counts->acquired;
        }
        $isResumed = false;
        try {
            $exchange->wait();
            $isResumed = true;
        } finally {
            // When PHP destroys the fiber, this block runs without an exception, so a catch block is not enough.
            if (!$isResumed) {
                $pool->abandon($exchange, $waiter, $pooled);
            }
        }
        $lent = $pooled ?? $waiter?->session() ?? throw new \LogicException('No session was lent');
        if ($waiter !== null && !$waiter->isSent) {
            return $this->runOn($lent, $statement, $cost, $sql, $parameters, null);
        }
        if ($exchange->isTimed) {
            $statement->learn($exchange->nanoseconds);
        }

        return $exchange->cost < 0 && $exchange->serverError === null && $exchange->waitFailure === null
            ? $lent->session->result($exchange, $sql, $parameters)
            : $this->resultBeforeRelease($lent, $exchange, $sql, $parameters);
    }

    /**
     * Handles the answer to a query that failed or left a transaction open, and gives the session back to the pool. The
     * session is given back last, because result() may send the query again on this session.
     *
     * @param list<mixed> $parameters
     *
     * @throws \LogicException in a fork. Each query of a fork fails, so the pool does not check for a fork before
     */
    private function resultBeforeRelease(
        PooledSession $pooled,
        #[\SensitiveParameter]
        Exchange $exchange,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
    ): Result {
        try {
            return $pooled->session->result($exchange, $sql, $parameters);
        } catch (\Throwable $failure) {
            $this->pool->ensureSameProcess();
            throw $failure;
        } finally {
            $this->pool->ensureTakenBack($pooled, $exchange);
        }
    }

    /**
     * Runs the statement on a session that was already lent for it, and gives the session back to the pool.
     *
     * @param list<mixed> $parameters
     */
    private function runOn(
        PooledSession $pooled,
        KnownStatement $statement,
        int $cost,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): Result {
        try {
            $result = $pooled->session->query($sql, $parameters, $cancellation);
            $statement->learn($pooled->session->lastQueryNanoseconds());

            return $result;
        } catch (\Throwable $failure) {
            $this->pool->ensureSameProcess();
            throw $failure;
        } finally {
            $this->pool->takeBack($pooled, $cost);
        }
    }

    /**
     * Returns whether encoding the parameters can call user code, such as jsonSerialize(). User code can suspend, so
     * such parameters must not be encoded while the pool chooses a session. Instead, the pool first lends the session
     * to the fiber of the statement. Then this fiber encodes the parameters.
     *
     * @param array<mixed> $parameters
     */
    private static function mayCallUserCode(#[\SensitiveParameter] array $parameters, int $depth = 0): bool
    {
        foreach ($parameters as $value) {
            if (
                \is_object($value) ? !$value instanceof \DateTimeInterface
                && !$value instanceof \UnitEnum : \is_array($value)
                && ($depth > self::MAX_SEARCH_DEPTH || self::mayCallUserCode($value, $depth + 1))
            ) {
                return true;
            }
        }

        return false;
    }
}
