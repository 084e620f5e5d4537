<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Spindle\Postgres\Internal\SqlText;

/** LRU cache of the statements that one connection has prepared. */
final class PgsqlStatements
{
    /** Maximum number of cached statements, by default. */
    public const MAX_STATEMENTS = 256;

    /** A full cache drops one sixteenth of its statements together, because deallocation needs a round trip. */
    private const DROP_DIVISOR = 16;

    /** @var array<string, PgsqlStatement> statements by SQL, the last used at the end; some are not prepared yet */
    private array $prepared = [];

    /** Number in the last name. */
    private int $lastNumber = 0;

    /** Prefix of all names. It is random, because several clients of a pooler may use the same server session. */
    private readonly string $prefix;

    /** @var array<string, true> SQL of statements prepared in the open transaction; a rollback may drop their tables */
    private array $tentative = [];

    /** @var list<string> names of dropped statements that the server has not deallocated */
    private array $droppedNames = [];

    /** @param int $maxStatements 0 to cache none, as behind a pooler that gives each transaction another session */
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

    /** Whether the statement may be cached: the cache is enabled, and the text is not too long. */
    public function canCache(string $sql): bool
    {
        return $this->maxStatements > 0 && \strlen($sql) <= SqlText::MAX_CACHED_BYTES;
    }

    public function newName(): string
    {
        return $this->prefix . ++$this->lastNumber;
    }

    /** Whether a message of the server contains a name that this cache has created. */
    public function areNamedIn(string $message): bool
    {
        return str_contains($message, $this->prefix);
    }

    /** Drops the least recently used statements if the cache is full. Call this before a statement is added. */
    public function dropLeastRecentlyUsed(): void
    {
        if (\count($this->prepared) >= $this->maxStatements) {
            $part = max(1, intdiv($this->maxStatements, self::DROP_DIVISOR));
            array_map($this->forget(...), array_map(strval(...), \array_slice(array_keys($this->prepared), 0, $part)));
        }
    }

    /** @param bool $tentative whether the statement was prepared in a transaction that is still open */
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
            $this->droppedNames[] = $name;
        }
        unset($this->prepared[$sql]);
    }

    /** Marks a prepared statement that is not in the cache for deallocation. */
    public function deallocateLater(string $name): void
    {
        $this->droppedNames[] = $name;
    }

    /** Drops all statements after the server has deallocated them. */
    public function forgetAll(): void
    {
        $this->prepared = $this->droppedNames = [];
    }

    /** Starts a generation: marks all statements for deallocation, because their texts may have another meaning now. */
    public function startGeneration(): void
    {
        array_map($this->forget(...), array_map(strval(...), array_keys($this->prepared)));
    }

    /** After a rollback, drops the statements that the transaction prepared, and marks them for deallocation. */
    public function forgetTentative(): void
    {
        array_map(
            $this->forget(...),
            array_map(strval(...), array_keys(array_intersect_key($this->tentative, $this->prepared))),
        );
        $this->tentative = [];
    }

    /** Keeps the statements that were prepared in the transaction, because it is over. */
    public function keepTentative(): void
    {
        $this->tentative = [];
    }

    /** Drops all statements and caches none from now on: a pooler switches between server sessions. */
    public function disable(): void
    {
        $this->maxStatements = 0;
        $this->forgetAll();
    }

    /** Whether the server has to deallocate dropped statements. */
    public function needDeallocation(): bool
    {
        return $this->droppedNames !== [];
    }

    /** Returns a script that deallocates the dropped statements, and counts them as deallocated. */
    public function takeDeallocationScript(): string
    {
        $names = $this->droppedNames;
        $this->droppedNames = [];

        return 'DEALLOCATE ' . implode('; DEALLOCATE ', $names);
    }
}
