<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\Result;

/** The cursors of one session's streams. The caller must have the session's turn and an open transaction. */
final class Cursors
{
    /**
     * Rows of the first fetch. Later ones fetch about FETCH_BYTES bytes, or the rows of FETCH_NANOSECONDS nanoseconds,
     * and at most MAX_ROWS rows. The server sends nothing of a fetch before it has all of its rows.
     */
    public const FIRST_ROWS = 10;
    private const FETCH_BYTES = 0x4_0000;
    private const FETCH_NANOSECONDS = 50_000_000;
    private const MAX_ROWS = 5_000;

    /** Comments, quoted text and similar, which may contain keywords and are skipped in the search for them. */
    private const SKIPPED_TEXT_PATTERN = <<<'REGEX'
        ~ --[^\n\r]*+
        | (?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/)
        | (?<![\w$])[eE]'(?:[^'\\]++|\\.|'')*+'
        | '(?:[^']++|'')*+'
        | "(?:[^"]++|"")*+"
        | (?<![\w$])\$(?<tag>(?:[a-zA-Z_\x80-\xFF][\w\x80-\xFF]*+)?)\$.*?\$\k<tag>\$
        ~xs
        REGEX;

    /** Returns CLOSE statements for cursors that still exist: a rollback to a savepoint also removes its cursors. */
    private const CLOSE_STATEMENTS_QUERY = "SELECT pg_catalog.string_agg('CLOSE ' || name, '; ') "
        . 'FROM pg_catalog.pg_cursors WHERE name = ANY ($1::pg_catalog.text[])';

    private int $last = 0;

    /** @var array<string, list<int>> types of the parameters, by the names of cursors that are being read */
    private array $types = [];

    /** @var list<string> names of abandoned cursors, which stay open as long as the transaction */
    private array $abandoned = [];

    public function __construct(
        private readonly PgsqlHandle $handle,
        private readonly PgsqlPreparation $preparation,
        private readonly SizeLimits $limits,
    ) {}

    /** Whether a statement only reads, so that it can have a cursor. In doubt returns false. */
    public static function fit(string $sql): bool
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
        $name = 'spindle_' . ++$this->last;
        // Prepared although it is not executed, because that returns the types, and errors with correct positions.
        $statement = $this->preparation->prepared($sql, $parameters, $cancellation);
        $values = $statement->encode($parameters, $this->preparation->types);
        $call = $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int
                => pg_send_query_params($connection, "DECLARE {$name} NO SCROLL CURSOR FOR {$sql}", $values),
        );

        if ($call->error !== null) {
            throw $this->preparation->exception($sql, $statement->parameters ?? [], $parameters, $call->error);
        }
        $this->types[$name] = $statement->parameters ?? [];

        return $name;
    }

    /**
     * Fetches the next rows. When there are fewer than $count, they are the last, and the cursor is closed.
     *
     * @param int<1, max> $count
     * @param array<mixed> $parameters parameters of the statement
     *
     * @return array{Result, int<1, max>} the rows, and how many to fetch next
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
        if ($call->error !== null || $call->result === null) {
            throw $this->preparation->exception(
                $sql,
                $this->types[$name] ?? [],
                $parameters,
                $call->error ?? throw Libpq::noResult(),
            );
        }
        $columns = $this->preparation->columns($call->result, $cancellation);
        $rows = new ResultRows($call->result, $this->limits, $call->nanoseconds, isWhole: false);
        if ($rows->count < $count) {
            $this->handle->command("CLOSE {$name}", $cancellation);
            unset($this->types[$name]);
        }

        $next = (int) min(
            self::MAX_ROWS,
            self::FETCH_BYTES / $rows->averageSize(),
            self::FETCH_NANOSECONDS * $count / max(1, $call->nanoseconds),
        );

        return [new Result($columns, $rows, $rows->count, $rows->count), max(1, $next)];
    }

    /** Marks a cursor as abandoned. Does not suspend. */
    public function abandon(string $name): void
    {
        $this->abandoned[] = $name;
        unset($this->types[$name]);
    }

    /** Whether no abandoned cursor is left to be closed. */
    public function areClosed(): bool
    {
        return $this->abandoned === [];
    }

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
                $this->handle->command($closing, null);
            }
        }
        if ($this->handle->status !== 'E') {
            $this->abandoned = [];
        }
    }
}
