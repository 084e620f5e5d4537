<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Spindle\Internal\Async\SuspendsOneCaller;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\TransactionEndDetector;

/** A request of one {@see PgsqlHandle}, and its outcome. */
final class Call
{
    use SuspendsOneCaller;

    /** Values of {@see $copyResponse}: COPY … FROM STDIN, and COPY … TO STDOUT. */
    public const COPY_IN_RESPONSE = 'G';
    public const COPY_OUT_RESPONSE = 'H';

    /** Result of the last completed statement. */
    public ?Result $result = null;

    /** First error that the server reported. */
    public ?ServerError $serverError = null;

    /** Exception for the caller that waits: the connection has ended, or the caller has cancelled the call. */
    public ?\Throwable $waitFailure = null;

    /** Direction of a COPY: one of the constants; '' for other statements. */
    public string $copyResponse = '';

    /** Whether the server waits for the data of a COPY. */
    public bool $acceptsData = false;

    /** Whether the end of the data is sent as soon as the socket is writable. */
    public bool $isEndPending = false;

    /** Whether a message other than a notice or a notification arrived during a COPY, so that the COPY has failed. */
    public bool $isInterrupted = false;

    /** Records the tags of a script's commands. */
    public ?TransactionEndDetector $endDetector = null;

    /** Whether the server has completed the request, or the connection has ended. */
    public bool $done = false;

    /** When the request was sent, by hrtime(). */
    public int $sentAt = 0;

    /** Nanoseconds from sending the request to the end of its answer. */
    public int $nanoseconds = 0;

    /** Whether the caller has abandoned the request, so that the server should stop it. */
    public bool $cancelled = false;

    /** @var \Closure(self): void|null called when the server has completed a request that was abandoned */
    public ?\Closure $onLateOutcome = null;

    public function affectedRows(): int
    {
        return $this->result === null ? 0 : self::affectedRowsOf($this->result);
    }

    /** Returns the number of rows that a statement returned or changed, from its command tag. */
    public static function affectedRowsOf(Result $result): int
    {
        $number = strrchr(pg_result_status($result, \PGSQL_STATUS_STRING), ' ');

        return $number === false ? 0 : (int) $number;
    }

    /** @return array<string, mixed> neither values nor rows */
    public function __debugInfo(): array
    {
        return ['done' => $this->done, 'copy' => $this->copyResponse];
    }
}
