<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SuspendsOneCaller;
use Spindle\Postgres\Internal\TransactionEndDetector;

/** A request that was sent at once, and its outcome. */
final class Call
{
    use SuspendsOneCaller;

    /** Result of the last completed statement. */
    public ?Result $result = null;

    public ?ServerError $error = null;

    /** Why no answer will come. */
    public ?\Throwable $failure = null;

    /** Direction of a COPY: G for COPY … FROM STDIN, H for COPY … TO STDOUT; '' for other statements. */
    public string $copy = '';

    /** Whether the server waits for the data of a COPY. */
    public bool $acceptsData = false;

    /** Whether the end of the data is waiting for room in the socket. */
    public bool $isEndPending = false;

    /** Whether a COPY failed: a message arrived that is neither a notice nor a notification. */
    public bool $interrupted = false;

    /** Records the tags of a script's commands. */
    public ?TransactionEndDetector $endDetector = null;

    public bool $done = false;

    /** When the request was sent, by hrtime(). */
    public int $since = 0;

    /** Nanoseconds until the request was done. */
    public int $nanoseconds = 0;

    /** Whether the caller left, so that the server should stop the request. */
    public bool $cancelled = false;

    /** @var \Closure(self): void|null receives the outcome if the caller has left */
    public ?\Closure $onLateOutcome = null;

    public function affected(): int
    {
        return $this->result === null ? 0 : self::affectedBy($this->result);
    }

    /** Returns the number of rows in the tag: written or returned ones. */
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
