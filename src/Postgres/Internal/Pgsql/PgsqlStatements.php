<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Spindle\Postgres\Internal\SqlText;

/** Cache of the statements that one connection has prepared, limited to those used last. */
final class PgsqlStatements
{
    /** Default limit of kept statements. */
    public const MAX_STATEMENTS = 256;

    /** One of this many parts of the cache is dropped at a time, because deallocating takes a round trip. */
    private const EVICTION_DIVISOR = 16;

    /** @var array<string, PgsqlStatement> statements by SQL, the last used at the end; without a name if used once */
    private array $prepared = [];

    private int $last = 0;

    /** Prefix of all names. It is random, because behind a pooler several clients use the same session. */
    private readonly string $prefix;

    /** @var array<string, true> SQL of statements from the open transaction: a rollback may undo what they use */
    private array $tentative = [];

    /** @var list<string> names of dropped statements that the server still has */
    private array $gone = [];

    /** @param int $maxStatements 0 to keep none, as behind a pooler that gives each transaction another connection */
    public function __construct(private int $maxStatements)
    {
        $this->prefix = 'spindle_' . bin2hex(random_bytes(4)) . '_';
    }

    public function find(string $sql): ?PgsqlStatement
    {
        $statement = $this->prepared[$sql] ?? null;
        if ($statement !== null && $this->maxStatements > 1) {
            unset($this->prepared[$sql]);
            $this->prepared[$sql] = $statement;
        }

        return $statement;
    }

    public function keeps(string $sql): bool
    {
        return $this->maxStatements > 0 && \strlen($sql) <= SqlText::MAX_CACHED_BYTES;
    }

    /** Returns a name for the next statement. */
    public function name(): string
    {
        return $this->prefix . ++$this->last;
    }

    /** Whether a server message names one of these statements. */
    public function areNamedIn(string $message): bool
    {
        return str_contains($message, $this->prefix);
    }

    /** Drops statements if the cache is full, before another is added. */
    public function makeRoom(): void
    {
        if (\count($this->prepared) >= $this->maxStatements) {
            $part = max(1, intdiv($this->maxStatements, self::EVICTION_DIVISOR));
            array_map($this->forget(...), array_map(strval(...), \array_slice(array_keys($this->prepared), 0, $part)));
        }
    }

    /** @param bool $tentative whether the statement was prepared in a transaction */
    public function add(string $sql, PgsqlStatement $statement, bool $tentative): PgsqlStatement
    {
        if ($tentative) {
            $this->tentative[$sql] = true;
        }

        return $this->prepared[$sql] = $statement;
    }

    /** Drops a statement, and marks it for deallocation. */
    public function forget(string $sql): void
    {
        $name = $this->prepared[$sql]->name ?? '';
        if ($name !== '') {
            $this->gone[] = $name;
        }
        unset($this->prepared[$sql]);
    }

    /** Marks a prepared statement for deallocation that was never added. */
    public function discard(string $name): void
    {
        $this->gone[] = $name;
    }

    /** Drops all statements after the server has deallocated them. */
    public function forgetAll(): void
    {
        $this->prepared = $this->gone = [];
    }

    /** Drops all statements, because the same text may mean something else now, and marks them for deallocation. */
    public function endGeneration(): void
    {
        array_map($this->forget(...), array_map(strval(...), array_keys($this->prepared)));
    }

    /** Drops the statements prepared in a transaction that was rolled back, and marks them for deallocation. */
    public function rollBack(): void
    {
        array_map(
            $this->forget(...),
            array_map(strval(...), array_keys(array_intersect_key($this->tentative, $this->prepared))),
        );
        $this->tentative = [];
    }

    /** Keeps the statements of the finished transaction. */
    public function settle(): void
    {
        $this->tentative = [];
    }

    /** Stops keeping statements: a pooler gives the client different server sessions, which do not know them. */
    public function disable(): void
    {
        $this->maxStatements = 0;
        $this->forgetAll();
    }

    /** Whether dropped statements wait for their deallocation. */
    public function areGone(): bool
    {
        return $this->gone !== [];
    }

    /** Returns a script that deallocates the dropped statements. */
    public function deallocation(): string
    {
        $names = $this->gone;
        $this->gone = [];

        return 'DEALLOCATE ' . implode('; DEALLOCATE ', $names);
    }
}
