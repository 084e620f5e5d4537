<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Native\Exchange;
use Spindle\Postgres\Result;

/** Runs the statements that are sent through a pool itself. */
final readonly class Queries
{
    /** How deep arrays are looked into. */
    private const DEPTH = 32;

    private ShortStatements $statements;

    /** @param bool $pipelines whether a session takes queries while it works at others */
    public function __construct(private Roster $roster, private bool $pipelines)
    {
        $this->statements = new ShortStatements();
    }

    /**
     * @param list<mixed> $parameters
     */
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
     * One of which nothing is known, or which may change its session.
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
     * Sends it, now or when a session is free for it, and suspends until it is answered.
     *
     * @param list<mixed> $parameters
     */
    private function send(KnownStatement $statement, bool $alone, string $sql, #[\SensitiveParameter] array $parameters): Result
    {
        $roster = $this->roster;
        $cost = $statement->cost;
        $exchange = new Exchange();
        // What never shares may take as long as it will.
        $exchange->isTimed = $statement->reads;
        $waiter = null;
        $member = $roster->available($alone, $cost);
        if ($member === null) {
            $waiter = new Waiter($exchange, $alone, $cost, hrtime(true), $sql, $parameters);
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
            // Also where the fiber is destroyed, which is no exception.
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
        // The session still counts it: it failed, or began a transaction. It may be sent again.
        try {
            return $native->result($exchange, $sql, $parameters);
        } finally {
            $roster->releaseFailed($member, $exchange);
        }
    }

    /**
     * On a member that counts it already.
     *
     * @param list<mixed> $parameters
     */
    private function finish(
        Member $member,
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
            // Also where the fiber is destroyed, which is no exception.
            $this->roster->release($member, $cost);
        }
    }

    /**
     * Whether to encode them runs code of others, which may suspend. So that is done by the fiber itself, on a connection that counts it.
     *
     * @param array<mixed> $parameters
     */
    private static function runCode(#[\SensitiveParameter] array $parameters, int $depth = 0): bool
    {
        foreach ($parameters as $value) {
            if (\is_object($value) ? !$value instanceof \DateTimeInterface && !$value instanceof \UnitEnum : \is_array($value) && ($depth > self::DEPTH || self::runCode($value, $depth + 1))) {
                return true;
            }
        }

        return false;
    }
}
