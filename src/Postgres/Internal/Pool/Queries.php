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

    /** @param bool $pipelines whether a session accepts queries while earlier ones are not answered */
    public function __construct(private SessionPool $roster, private bool $pipelines)
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
        $holders = $this->roster->holders;
        $alone = !$statement->shares || !$this->pipelines || $holders->count > 0 && $holders->holds();
        if ($cancellation === null && $this->pipelines && !self::runCode($parameters)) {
            return $this->send($statement, $alone, $sql, $parameters);
        }

        $cost = $statement->cost;
        $member = $this->roster->obtain($alone, $cost, $cancellation);

        return $this->finish($member, $statement, $cost, $sql, $parameters, $cancellation);
    }

    /**
     * Runs a statement on a session of its own, because it is unknown or may change the session.
     *
     * @param list<mixed> $parameters
     */
    private function borrow(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        $member = $this->roster->obtain(true, 0, $cancellation);
        try {
            $result = $member->session->query($sql, $parameters, $cancellation);
            $this->statements->learn($sql, $member->session->took());

            return $result;
        } finally {
            $this->roster->giveBack($member);
        }
    }

    /**
     * Sends the statement, now or when a session is available, and suspends until the answer arrives.
     *
     * @param list<mixed> $parameters
     */
    private function send(
        KnownStatement $statement,
        bool $alone,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
    ): Result {
        $roster = $this->roster;
        $cost = $statement->cost;
        $exchange = new Exchange();
        // A statement that writes never shares, so its time does not matter.
        $exchange->isTimed = $statement->reads;
        $waiter = null;
        $member = $roster->available($alone, $cost);
        if ($member === null) {
            $waiter = new WaitingFiber($exchange, $alone, $cost, hrtime(true), $sql, $parameters);
            $roster->enter($waiter);
        } elseif ($roster->isStale($member) || $member->native?->send($exchange, $sql, $parameters) !== true) {
            return $this->finish($roster->obtain($alone, $cost, null), $statement, $cost, $sql, $parameters, null);
        } else {
            $member->lend($alone, $exchange->cost = $cost);
            ++$roster->counts->acquired;
        }
        $isAwake = false;
        try {
            $exchange->wait();
            $isAwake = true;
        } finally {
            // A fiber that is destroyed gets here too, without an exception.
            if (!$isAwake) {
                $roster->leave($exchange, $waiter, $member);
            }
        }
        if ($waiter !== null) {
            if ($waiter->failure !== null) {
                throw $waiter->failure;
            }
            $member = $waiter->member;
            if ($member !== null && !$waiter->isSent) {
                return $this->finish($member, $statement, $cost, $sql, $parameters, null);
            }
        }
        if ($exchange->isTimed) {
            $statement->learn($exchange->took);
        }
        $native = $member?->native;
        if ($member === null || $native === null) {
            throw new \LogicException('A fiber that waits for a session was woken without one');
        }
        if ($exchange->cost < 0 && $exchange->error === null && $exchange->failure === null) {
            return $native->result($exchange, $sql, $parameters);
        }
        // The session still counts the query: it failed or began a transaction. result() may send it again.
        try {
            return $native->result($exchange, $sql, $parameters);
        } finally {
            $roster->releaseFailed($member, $exchange);
        }
    }

    /**
     * Runs the statement on a session that counts it already.
     *
     * @param list<mixed> $parameters
     */
    private function finish(
        PooledSession $member,
        KnownStatement $statement,
        int $cost,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): Result {
        try {
            $result = $member->session->query($sql, $parameters, $cancellation);
            $statement->learn($member->session->took());

            return $result;
        } catch (\Throwable $failure) {
            $this->roster->ensureOurs();
            throw $failure;
        } finally {
            // A fiber that is destroyed gets here too, without an exception.
            $this->roster->release($member, $cost);
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
