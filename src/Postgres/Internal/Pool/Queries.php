<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Native\Exchange;
use Spindle\Postgres\Result;

/** Runs statements that are sent through the pool itself. */
final readonly class Queries
{
    /** Depth to which arrays of parameters are searched for objects. */
    private const MAX_DEPTH = 32;

    private ShortStatements $statements;

    /** @param bool $supportsPipelining whether a session accepts queries while earlier ones are not answered */
    public function __construct(private SessionPool $pool, private bool $supportsPipelining)
    {
        $this->statements = new ShortStatements();
    }

    /** @param list<mixed> $parameters */
    public function run(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        $statement = $this->statements->find($sql);
        if ($statement === null || !$statement->isPlain) {
            return $this->borrow($sql, $parameters, $cancellation);
        }
        $holders = $this->pool->holders;
        $exclusive = !$statement->shares || !$this->supportsPipelining || $holders->count > 0 && $holders->holds();
        if ($cancellation === null && $this->supportsPipelining && !self::runCode($parameters)) {
            return $this->send($statement, $exclusive, $sql, $parameters);
        }

        $cost = $statement->cost;
        $pooled = $this->pool->obtain($exclusive, $cost, $cancellation);

        return $this->finish($pooled, $statement, $cost, $sql, $parameters, $cancellation);
    }

    /**
     * Runs a statement on a session of its own, because it is unknown or may change the session.
     *
     * @param list<mixed> $parameters
     */
    private function borrow(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        $pooled = $this->pool->obtain(true, 0, $cancellation);
        try {
            $result = $pooled->session->query($sql, $parameters, $cancellation);
            $this->statements->learn($sql, $pooled->session->took());

            return $result;
        } finally {
            $this->pool->giveBack($pooled);
        }
    }

    /**
     * Sends the statement, now or when a session is available, and suspends until the answer arrives.
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
        // A statement that writes never shares, so its time does not matter.
        $exchange->isTimed = $statement->reads;
        $waiter = null;
        $pooled = $pool->available($exclusive, $cost);
        if ($pooled === null) {
            $waiter = new WaitingFiber($exchange, $exclusive, $cost, hrtime(true), $sql, $parameters);
            $pool->enqueue($waiter);
        } elseif ($pool->isStale($pooled) || $pooled->native?->send($exchange, $sql, $parameters) !== true) {
            return $this->finish($pool->obtain($exclusive, $cost, null), $statement, $cost, $sql, $parameters, null);
        } else {
            $pooled->lend($exclusive, $exchange->cost = $cost);
            ++$pool->counts->acquired;
        }
        $isAwake = false;
        try {
            $exchange->wait();
            $isAwake = true;
        } finally {
            // A fiber that is destroyed gets here too, without an exception.
            if (!$isAwake) {
                $pool->abandon($exchange, $waiter, $pooled);
            }
        }
        if ($waiter !== null) {
            if ($waiter->failure !== null) {
                throw $waiter->failure;
            }
            $pooled = $waiter->pooled;
            if ($pooled !== null && !$waiter->isSent) {
                return $this->finish($pooled, $statement, $cost, $sql, $parameters, null);
            }
        }
        if ($exchange->isTimed) {
            $statement->learn($exchange->took);
        }
        $native = $pooled?->native;
        if ($pooled === null || $native === null) {
            throw new \LogicException('A fiber that waits for a session was woken without one');
        }
        if ($exchange->cost < 0 && $exchange->error === null && $exchange->failure === null) {
            return $native->result($exchange, $sql, $parameters);
        }
        // The session still counts the query: it failed or began a transaction. result() may send it again.
        try {
            return $native->result($exchange, $sql, $parameters);
        } finally {
            $pool->releaseFailed($pooled, $exchange);
        }
    }

    /**
     * Runs the statement on a session that counts it already.
     *
     * @param list<mixed> $parameters
     */
    private function finish(
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
            $statement->learn($pooled->session->took());

            return $result;
        } catch (\Throwable $failure) {
            $this->pool->ensureOurs();
            throw $failure;
        } finally {
            // A fiber that is destroyed gets here too, without an exception.
            $this->pool->release($pooled, $cost);
        }
    }

    /**
     * Whether encoding the parameters may call user code, which may suspend. If so, the fiber itself encodes them, on a
     * session that counts it already.
     *
     * @param array<mixed> $parameters
     */
    private static function runCode(#[\SensitiveParameter] array $parameters, int $depth = 0): bool
    {
        foreach ($parameters as $value) {
            if (
                \is_object($value) ? !$value instanceof \DateTimeInterface
                && !$value instanceof \UnitEnum : \is_array($value)
                && ($depth > self::MAX_DEPTH || self::runCode($value, $depth + 1))
            ) {
                return true;
            }
        }

        return false;
    }
}
