<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Postgres\Internal\ServerError;

/** What was sent at once, and what came of it. */
final class Call
{
    /** Of the last statement that was done. */
    public ?Result $result = null;

    public ?ServerError $error = null;

    /** Why there will be no answer. */
    public ?\Throwable $failure = null;

    /** What it turned out to be: G for a COPY … FROM STDIN, H for one TO STDOUT. */
    public string $copy = '';

    /** Whether the server waits for the data of a COPY. */
    public bool $takesData = false;

    /** Whether it gets no more. */
    public bool $ends = false;

    /** During a COPY, whether the server said something that is neither a notice nor a notification: it failed. */
    public bool $interrupted = false;

    public bool $done = false;

    /** When it was sent, by hrtime(). */
    public int $since = 0;

    /** Nanoseconds until it was done. */
    public int $took = 0;

    /** Whether its caller left, so that the server is to stop it. */
    public bool $cancelled = false;

    /** @var \Fiber<mixed, mixed, mixed, mixed>|null of who waits */
    private ?\Fiber $fiber = null;

    /** @var Suspension<null>|null of {main}, if that waits */
    private ?Suspension $main = null;

    public function affected(): int
    {
        return $this->result === null ? 0 : self::affectedBy($this->result);
    }

    /** Rows that the command wrote or read, as its tag tells. */
    public static function affectedBy(Result $result): int
    {
        $number = strrchr(pg_result_status($result, \PGSQL_STATUS_STRING), ' ');

        return $number === false ? 0 : (int) $number;
    }

    /** Suspends the caller until {@see wake()} is called. A fiber does without a Suspension of the loop, which costs as much as all the rest. */
    public function wait(): void
    {
        $this->fiber = \Fiber::getCurrent();
        if ($this->fiber === null) {
            $this->main = EventLoop::getSuspension();
        }
        try {
            $this->main === null ? \Fiber::suspend() : $this->main->suspend();
        } finally {
            // Not resumed where the loop was left by an exception, or the fiber is destroyed.
            $this->fiber = $this->main = null;
        }
    }

    /** Whoever waits runs at once, up to where it suspends again. Not for a destructor, in which no fiber can be resumed. */
    public function wake(): void
    {
        if ($this->fiber !== null) {
            $fiber = $this->fiber;
            $this->fiber = null;
            try {
                $fiber->resume();
            } catch (\Throwable $failure) {
                EventLoop::queue(static fn() => throw $failure);
            }
        } elseif ($this->main !== null) {
            $main = $this->main;
            $this->main = null;
            $main->resume();
        }
    }

    /** @return array<string, mixed> neither values nor rows */
    public function __debugInfo(): array
    {
        return ['done' => $this->done, 'copy' => $this->copy];
    }
}
