<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Postgres\Internal\SqlText;

/**
 * LRU cache of the statements that one connection has prepared. All of them were prepared in the current generation: a
 * period in which no SQL text changes its meaning. A new search_path, for example, starts another generation.
 */
final class PreparedStatements
{
    public const MAX_STATEMENTS = 256;

    /** @var array<string, PreparedStatement> statements by their SQL */
    private array $prepared = [];

    public int $generation = 0;

    /** Whether some statements may become out of date when the open transaction ends. */
    public bool $mayBecomeStale = false;

    /** @var array<string, true> SQL of statements prepared in the open transaction; a rollback may drop their tables */
    private array $tentative = [];

    /** Number of uses and removals so far. Equals `$lastUse` of the statement used last, unless a removal followed. */
    public int $clock = 0;

    private int $lastNumber = 0;

    /** Random prefix of all names, because several clients of a pooler may use the same server session. */
    private readonly string $prefix;

    /** @param int $maxStatements 0 to cache none, for a pooler that gives each transaction another session */
    public function __construct(private int $maxStatements)
    {
        $this->prefix = 'spindle_' . bin2hex(random_bytes(4)) . '_';
    }

    public function find(string $sql): ?PreparedStatement
    {
        $statement = $this->prepared[$sql] ?? null;
        if ($statement !== null) {
            $statement->lastUse = ++$this->clock;
        }

        return $statement;
    }

    /** Returns a name for a statement to prepare; '' if the statement is not going to be cached. */
    public function newName(string $sql, bool $escapesWithBackslash = false): string
    {
        return $this->maxStatements === 0
            || \strlen($sql) > SqlText::MAX_CACHED_BYTES
            || !SqlText::mayStayPrepared($sql, $escapesWithBackslash)
            ? ''
            : $this->prefix . ++$this->lastNumber;
    }

    /**
     * Adds a statement, unless it has no name. If the cache is full, drops the least recently used statement.
     *
     * @param bool $tentative whether the statement was prepared in a transaction that is still open
     *
     * @return list<string> names of the dropped statements, which the caller must deallocate
     */
    public function add(string $sql, PreparedStatement $statement, bool $tentative = false): array
    {
        if ($this->maxStatements === 0 || $statement->name === '') {
            return [];
        }
        if ($tentative) {
            $this->tentative[$sql] = $this->mayBecomeStale = true;
        }
        $droppedNames = isset($this->prepared[$sql]) ? [$this->prepared[$sql]->name] : [];
        $statement->lastUse = ++$this->clock;
        $this->prepared[$sql] = $statement;
        if (\count($this->prepared) > $this->maxStatements) {
            $uses = array_map(static fn(PreparedStatement $one): int => $one->lastUse, $this->prepared);
            $oldest = (string) array_search(min($uses), $uses, true);
            $droppedNames[] = $this->prepared[$oldest]->name;
            unset($this->prepared[$oldest]);
        }

        return array_values(array_diff($droppedNames, [$statement->name, '']));
    }

    public function forget(string $sql): void
    {
        ++$this->clock;
        unset($this->prepared[$sql]);
    }

    /**
     * Removes a prepared statement from the cache if the server reports that the statement is out of date. Removes all
     * statements if the server reports that the statement's name is unknown or in use: other code or a pooler has then
     * changed the session's statements. If the name of a retry is also unknown or in use, disables the cache.
     *
     * @return bool true when the statement was not executed because the prepared statement is out of date
     */
    public function forgetStale(string $sql, #[\SensitiveParameter] Exchange $exchange, int $attempt): bool
    {
        // If Bind has succeeded, the error comes from a function or trigger that the statement executes.
        if ($exchange->serverError === null || $exchange->isBound || !$exchange->serverError->isStale()) {
            return false;
        }
        $concernsStatementName = $exchange->serverError->concernsStatementName();
        $concernsStatementName ? $this->forgetAll() : $this->forget($sql);
        if ($attempt > 1 && $concernsStatementName) {
            $this->disable();
        }

        return true;
    }

    public function forgetAll(): void
    {
        ++$this->clock;
        $this->prepared = $this->tentative = [];
    }

    /** @return list<string> names of the statements of the previous generation, which must be deallocated */
    public function startGeneration(): array
    {
        ++$this->generation;
        $names = array_map(static fn(PreparedStatement $one): string => $one->name, array_values($this->prepared));
        $this->forgetAll();

        return $names;
    }

    /** @return list<string> names of the statements from a rolled back transaction, which must be deallocated */
    public function forgetTentative(): array
    {
        $names = array_map(
            static fn(PreparedStatement $one): string => $one->name,
            array_values(array_intersect_key($this->prepared, $this->tentative)),
        );
        ++$this->clock;
        $this->prepared = array_diff_key($this->prepared, $this->tentative);
        $this->tentative = [];

        return $names;
    }

    /** Keeps the remaining statements of the last transaction, because no rollback can affect them any more. */
    public function keepTentative(): void
    {
        $this->tentative = [];
        $this->mayBecomeStale = false;
    }

    /** Drops all statements and caches none from now on, because a pooler switches between server sessions. */
    public function disable(): void
    {
        $this->maxStatements = 0;
        $this->forgetAll();
    }
}
