<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\Result;

/** Of one session, those cursors that its streams use. For whoever's turn it is, and in a transaction. */
final class Cursors
{
    /**
     * Rows that are fetched at first; then so many as make about BYTES or take the server about TIME, in nanoseconds, and never more than MOST.
     * The server sends nothing of them before it has all.
     */
    public const FIRST = 10;
    private const BYTES = 0x4_0000;
    private const TIME = 50_000_000;
    private const MOST = 5_000;

    /** What is passed over on the way to the first keyword, and may hide others. */
    private const OPAQUE = <<<'REGEX'
        ~ --[^\n\r]*+
        | (?<comment>/\*(?:[^*/]++|\*(?!/)|/(?!\*)|(?&comment))*+\*/)
        | (?<![\w$])[eE]'(?:[^'\\]++|\\.|'')*+'
        | '(?:[^']++|'')*+'
        | "(?:[^"]++|"")*+"
        | (?<![\w$])\$(?<tag>(?:[a-zA-Z_\x80-\xFF][\w\x80-\xFF]*+)?)\$.*?\$\k<tag>\$
        ~xs
        REGEX;

    /** What closes those that are still there: a savepoint that is rolled back takes its cursors with it. */
    private const CLOSING = "SELECT pg_catalog.string_agg('CLOSE ' || name, '; ') FROM pg_catalog.pg_cursors WHERE name = ANY ($1::pg_catalog.text[])";

    private int $last = 0;

    /** @var array<string, list<int>> by the names of those that are read, the types of their parameters */
    private array $types = [];

    /** @var list<string> names of those that nobody reads any more; they are open as long as the transaction */
    private array $left = [];

    public function __construct(private readonly Handle $handle, private readonly Preparation $preparation, private readonly SizeLimits $limits) {}

    /** Whether a statement reads, and neither writes nor makes a table of what it reads. In doubt it is said not to. */
    public static function fit(string $sql): bool
    {
        $text = preg_replace(self::OPAQUE, ' ', $sql);

        return $text !== null
            && preg_match('~^[\s(]*+(?:SELECT|VALUES|TABLE|WITH)\b~i', $text) === 1
            && preg_match('~\b(?:INTO|INSERT|DELETE|MERGE|(?<!FOR )(?<!KEY )UPDATE)\b~i', $text) === 0;
    }

    /**
     * @param list<mixed> $parameters
     *
     * @return string its name
     */
    public function open(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): string
    {
        $name = 'spindle_' . ++$this->last;
        // Prepared though it is not executed, for that tells the types, and errors where they are.
        $statement = $this->preparation->prepared($sql, $parameters, $cancellation);
        $values = $statement->encode($parameters, $this->preparation->types);
        $call = $this->handle->call($cancellation, static fn(Connection $connection): bool|int => pg_send_query_params($connection, "DECLARE {$name} NO SCROLL CURSOR FOR {$sql}", $values));

        if ($call->error !== null) {
            throw $this->preparation->exception($sql, $statement->parameters ?? [], $parameters, $call->error);
        }
        $this->types[$name] = $statement->parameters ?? [];

        return $name;
    }

    /**
     * The next rows; fewer than were asked for are the last, and the cursor is closed then.
     *
     * @param int<1, max>  $count
     * @param array<mixed> $parameters of the statement
     *
     * @return array{Result, int<1, max>} and how many to fetch next
     */
    public function fetch(string $name, int $count, string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): array
    {
        $call = $this->handle->call($cancellation, static fn(Connection $connection): bool|int => pg_send_query($connection, "FETCH {$count} FROM {$name}"));
        if ($call->error !== null || $call->result === null) {
            throw $this->preparation->exception($sql, $this->types[$name] ?? [], $parameters, $call->error ?? throw Libpq::noResult());
        }
        $columns = $this->preparation->columns($call->result, $cancellation);
        $rows = new ResultRows($call->result, $this->limits, $call->took, isWhole: false);
        if ($rows->count < $count) {
            $this->handle->command("CLOSE {$name}", $cancellation);
            unset($this->types[$name]);
        }

        $next = (int) min(self::MOST, self::BYTES / $rows->averageSize(), self::TIME * $count / max(1, $call->took));

        return [new Result($columns, $rows, $rows->count, $rows->count), max(1, $next)];
    }

    /** Nobody reads it any more. Does not suspend. */
    public function leave(string $name): void
    {
        $this->left[] = $name;
        unset($this->types[$name]);
    }

    /** Whether there is something to be done before anything else is. */
    public function areTidy(): bool
    {
        return $this->left === [];
    }

    public function tidy(): void
    {
        if ($this->handle->status === 'T') {
            $closing = $this->handle->ask(self::CLOSING, ['{' . implode(',', $this->left) . '}'], null)[0][0] ?? null;
            if ($closing !== null) {
                $this->handle->command($closing, null);
            }
        }
        if ($this->handle->status !== 'E') {
            $this->left = [];
        }
    }
}
