<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Spindle\Postgres\Internal\OneWaiter;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\TransactionEnds;

/** What was sent at once, and what came of it. */
final class Call
{
    use OneWaiter;

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

    /** Is told the tags of a script's commands. */
    public ?TransactionEnds $transactionEnds = null;

    public bool $done = false;

    /** When it was sent, by hrtime(). */
    public int $since = 0;

    /** Nanoseconds until it was done. */
    public int $took = 0;

    /** Whether its caller left, so that the server is to stop it. */
    public bool $cancelled = false;

    /** @var \Closure(self): void|null who wants to know what came of it then */
    public ?\Closure $late = null;

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

    /** @return array<string, mixed> neither values nor rows */
    public function __debugInfo(): array
    {
        return ['done' => $this->done, 'copy' => $this->copy];
    }
}
