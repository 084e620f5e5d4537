<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\Async\SuspendsOneCaller;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Result;
use Spindle\Postgres\ResultTooLargeException;

/** Messages up to one Sync, or a simple query, and the server's answer. Rows stay encoded until they are read. */
final class Exchange
{
    use SuspendsOneCaller;

    /** Rows received and not taken by {@see takeRows()}; null if there are none. */
    public ?EncodedRows $rows = null;

    /** Whether the caller takes rows while further rows arrive. */
    public bool $isStreamed = false;

    /** Why rows were dropped; null if no rows were dropped. */
    public ?ResultTooLargeException $tooLarge = null;

    /** Whether values have the formats of {@see Columns::$formats}; otherwise all values are text. */
    public bool $binary = false;

    /** Tag of the completed command, such as "INSERT 0 1"; may be '' if rows arrived. */
    public string $tag = '';

    /** @var list<int>|null type OIDs of the parameters; null until the server has described them */
    public ?array $parameterTypes = null;

    /** @var array{list<string>, list<int>}|null names and type OIDs of the columns, if described */
    public ?array $description = null;

    public ?ServerError $serverError = null;

    /** Exception for the caller that waits: the connection has ended, or the caller has cancelled the exchange. */
    public ?\Throwable $waitFailure = null;

    /** Whether the server has sent as many rows as were requested, so that the portal may have more. */
    public bool $isPortalSuspended = false;

    /** Type of the message that began a COPY: a constant of {@see BackendMessages}; '' if there is no COPY. */
    public string $copyResponse = '';

    public bool $isCopyDataEnded = false;

    /** Transaction status after the exchange: I, T or E; '' until the exchange is done. */
    public string $status = '';

    /** Nanoseconds that the server took; -1 when unknown. {@see StatementRunner} later stores the caller's wait. */
    public int $nanoseconds = -1;

    /** Nanoseconds that the server will probably take; negative when no pool counts them in the session's load. */
    public int $cost = -1;

    public bool $isTimed = true;

    /** Columns of the statement; null if it returns no rows. Only {@see PipelinedSession::send()} sets them. */
    public ?Columns $columns = null;

    /** Whether the messages execute a statement, so that CommandComplete or an error must follow. */
    public bool $executes = true;

    /** Whether the outcome has arrived: a completed command, a suspended portal or an error. */
    public bool $hasOutcome = false;

    /** Whether a BEGIN was sent ahead of the statement, and the CommandComplete of the BEGIN has not arrived. */
    public bool $begins = false;

    /** Whether no more messages are expected: the answer is complete, or the connection has ended. */
    public bool $done = false;

    /** Whether further rows and COPY data are dropped when they arrive. */
    public bool $discarded = false;

    /** Whether the caller has abandoned the exchange, so that the server should stop it. */
    public bool $cancelled = false;

    /** Whether Bind succeeded, so that a later error comes from the execution. */
    public bool $isBound = false;

    /**
     * Whether the statement may have effects even if it fails, so that it must not be sent again. Such a statement is
     * sent only after the answers to all earlier exchanges, because a late cancel request for one could stop it.
     */
    public bool $mustNotRepeat = false;

    /** Whether the exchange was in flight at the time of a cancel request, which may stop this exchange by mistake. */
    public bool $isSuspect = false;

    /** Whether a cancel request stopped this exchange, although its caller has not cancelled it. */
    public bool $isStoppedByMistake = false;

    public ?TransactionEndDetector $endDetector = null;

    /** Generation of {@see PreparedStatements} when this exchange was sent; may be null if it prepares no statement. */
    public ?int $generation = null;

    /** @var (\Closure(self): void)|null called as soon as the messages are sent; may write further messages */
    public ?\Closure $onSent = null;

    /** @var (\Closure(string): void)|null called with each row of a COPY … TO STDOUT */
    public ?\Closure $onCopyData = null;

    /** @param bool $extended false for a simple query, after which the server sends ReadyForQuery without a Sync */
    public function __construct(public readonly bool $extended = true) {}

    /** @param int<1, max> $count number of rows in `$messages`, which ends with padding */
    public function addRows(#[\SensitiveParameter] string $messages, int $count): void
    {
        if ($this->rows === null) {
            $this->rows = new EncodedRows($this->binary, $messages, $count);
        } else {
            $this->rows->add($messages, $count);
        }
    }

    /** Removes and returns the rows received since the last call; null if there are none. */
    public function takeRows(): ?EncodedRows
    {
        [$rows, $this->rows] = [$this->rows, null];

        return $rows;
    }

    /** Drops all further rows. Unless the exchange is streamed, also drops the rows that were received before. */
    public function dropRows(ResultTooLargeException $tooLarge): void
    {
        $this->tooLarge = $tooLarge;
        $this->discarded = true;
        if (!$this->isStreamed) {
            $this->rows = null;
        }
    }

    /** @param Columns|null $columns null for a statement without rows. The query must be done and have succeeded */
    public function result(?Columns $columns): Result
    {
        if ($this->tooLarge !== null) {
            throw $this->tooLarge;
        }
        if ($this->isPortalSuspended || $this->rows !== null && $columns === null) {
            throw ProtocolException::malformed(
                $this->isPortalSuspended
                    ? 'the server stopped after a part of the rows, although the client had requested all'
                    : 'the server sent rows for a statement without columns',
            );
        }

        return new Result($columns, $this->rows, $this->affectedRows());
    }

    public function affectedRows(): int
    {
        if ($this->rows !== null) {
            return $this->rows->count;
        }
        $number = strrchr($this->tag, ' ');

        return $number === false ? 0 : (int) $number;
    }

    /** @return array<string, mixed> tag and state, no rows */
    public function __debugInfo(): array
    {
        return ['tag' => $this->tag, 'done' => $this->done];
    }
}
