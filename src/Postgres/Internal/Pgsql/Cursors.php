<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\Result;

/** The cursors of a session's streams. The caller must hold the session's lock and have an open transaction. */
final class Cursors
{
    /** Number of rows of the first fetch. */
    public const FIRST_ROWS = 10;

    /** Maximum bytes that a later fetch should return, estimated by the average row of the previous fetch. */
    private const FETCH_BYTES = 0x4_0000;

    /** Maximum time that a later fetch should take, because libpq returns no row before it has received all rows. */
    private const FETCH_NANOSECONDS = 50_000_000;

    /** Maximum number of rows of one fetch. */
    private const MAX_ROWS = 5_000;

    /** Comments and quoted text, which are skipped in the search for keywords. */
    private const SKIPPED_TEXT_PATTERN = <<<'REGEX'
        ~ --[^\n\r]*+
        | (?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/)
        | (?<![\w$])[eE]'(?:[^'\\]++|\\.|'')*+'
        | '(?:[^']++|'')*+'
        | "(?:[^"]++|"")*+"
        | (?<![\w$])\$(?<tag>(?:[a-zA-Z_\x80-\xFF][\w\x80-\xFF]*+)?)\$.*?\$\k<tag>\$
        ~xs
        REGEX;

    /** Query for a script that closes those cursors that exist. A rollback to a savepoint may have closed some. */
    private const CLOSE_STATEMENTS_QUERY = "SELECT pg_catalog.string_agg('CLOSE ' || name, '; ') "
        . 'FROM pg_catalog.pg_cursors WHERE name = ANY ($1::pg_catalog.text[])';

    /** Number in the last cursor's name. */
    private int $lastNumber = 0;

    /** @var array<string, list<int>> type OIDs of the parameters, by the names of the cursors that are being read */
    private array $parameterTypes = [];

    /** @var list<string> names of abandoned cursors that are not closed yet */
    private array $abandoned = [];

    public function __construct(
        private readonly PgsqlHandle $handle,
        private readonly PgsqlPreparation $preparation,
        private readonly SizeLimits $limits,
    ) {}

    /** Whether a statement only reads, so that a cursor can be declared for it. Returns false in doubt. */
    public static function canDeclare(string $sql): bool
    {
        $text = preg_replace(self::SKIPPED_TEXT_PATTERN, ' ', $sql);

        return $text !== null
            && preg_match('~^[\s(]*+(?:SELECT|VALUES|TABLE|WITH)\b~i', $text) === 1
            && preg_match('~\b(?:INTO|INSERT|DELETE|MERGE|(?<!FOR )(?<!KEY )UPDATE)\b~i', $text) === 0;
    }

    /**
     * @param list<mixed> $parameters
     *
     * @return string the name of the cursor
     */
    public function open(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): string
    {
        $name = 'spindle_' . ++$this->lastNumber;
        // The statement is prepared although DECLARE is executed instead. Preparing makes the types of its parameters
        // known, and its errors have correct positions in the statement.
        $statement = $this->preparation->prepared($sql, $parameters, $cancellation);
        $types = $statement->parameterTypes ?? [];
        $values = $statement->encode($parameters, $this->preparation->types);
        $call = $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int
                => pg_send_query_params($connection, "DECLARE {$name} NO SCROLL CURSOR FOR {$sql}", $values),
        );

        if ($call->serverError !== null) {
            throw $this->preparation->exception($sql, $types, $parameters, $call->serverError);
        }
        $this->parameterTypes[$name] = $types;

        return $name;
    }

    /**
     * Fetches the next rows. Closes the cursor if it had fewer than `$count` further rows.
     *
     * @param int<1, max> $count
     * @param array<mixed> $parameters parameters of the statement
     *
     * @return array{Result, int<1, max>} the rows, and the number of rows to fetch next
     */
    public function fetch(
        string $name,
        int $count,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): array {
        $call = $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_query($connection, "FETCH {$count} FROM {$name}"),
        );
        if ($call->serverError !== null || $call->result === null) {
            throw $this->preparation->exception(
                $sql,
                $this->parameterTypes[$name] ?? [],
                $parameters,
                $call->serverError ?? throw Libpq::noResult(),
            );
        }
        $columns = $this->preparation->columns($call->result, $cancellation);
        $rows = new ResultRows($call->result, $this->limits, $call->nanoseconds, isWhole: false);
        if ($rows->count < $count) {
            $this->handle->runIgnoringErrors("CLOSE {$name}", $cancellation);
            unset($this->parameterTypes[$name]);
        }

        $next = (int) min(
            self::MAX_ROWS,
            self::FETCH_BYTES / $rows->averageRowBytes(),
            self::FETCH_NANOSECONDS * $count / max(1, $call->nanoseconds),
        );

        return [new Result($columns, $rows, $rows->count, $rows->count), max(1, $next)];
    }

    /** Marks a cursor to be closed later. Does not suspend. */
    public function abandon(string $name): void
    {
        $this->abandoned[] = $name;
        unset($this->parameterTypes[$name]);
    }

    /** Whether all abandoned cursors are closed. */
    public function areClosed(): bool
    {
        return $this->abandoned === [];
    }

    /** Closes the abandoned cursors, unless the transaction has failed and has to be rolled back first. */
    public function closeAbandoned(): void
    {
        if ($this->handle->status === 'T') {
            $closing = $this->handle->fetchRows(
                self::CLOSE_STATEMENTS_QUERY,
                ['{' . implode(',', $this->abandoned) . '}'],
                null,
            )[0][0]
                ?? null;
            if ($closing !== null) {
                $this->handle->runIgnoringErrors($closing, null);
            }
        }
        if ($this->handle->status !== 'E') {
            $this->abandoned = [];
        }
    }
}
