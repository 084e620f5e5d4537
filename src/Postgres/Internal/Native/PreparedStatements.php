<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\SqlText;

/**
 * Cache of the statements that one connection has prepared, limited to those used last. All belong to one generation,
 * in which a text keeps its meaning. A new search_path, for example, begins another one.
 */
final class PreparedStatements
{
    /** Default limit of kept statements. */
    public const MAX_STATEMENTS = 256;

    /** @var array<string, PreparedStatement> statements by their SQL */
    private array $prepared = [];

    /** Number of the current generation. */
    public int $generation = 0;

    /** Whether the end of the transaction may make some statements out of date. */
    public bool $unsettled = false;

    /** @var array<string, true> SQL of statements from the open transaction: a rollback may undo what they use */
    private array $tentative = [];

    /** Counts uses. */
    private int $clock = 0;

    private int $last = 0;

    /** Prefix of all names. It is random, because behind a pooler several clients use the same session. */
    private readonly string $prefix;

    /** @param int $maxStatements 0 to keep none, as behind a pooler that gives each transaction another connection */
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

    /** Returns a name for the next statement; '' when it is not kept. */
    public function name(string $sql): string
    {
        return $this->maxStatements === 0 || \strlen($sql) > SqlText::MAX_CACHED_BYTES
            ? ''
            : $this->prefix . ++$this->last;
    }

    /**
     * @param bool $tentative whether the statement was prepared in a transaction
     *
     * @return list<string> names of statements that were dropped from the cache
     */
    public function add(string $sql, PreparedStatement $statement, bool $tentative = false): array
    {
        if ($this->maxStatements === 0 || $statement->name === '') {
            return [];
        }
        if ($tentative) {
            $this->tentative[$sql] = $this->unsettled = true;
        }
        $gone = isset($this->prepared[$sql]) ? [$this->prepared[$sql]->name] : [];
        $statement->lastUse = ++$this->clock;
        $this->prepared[$sql] = $statement;
        if (\count($this->prepared) > $this->maxStatements) {
            $uses = array_map(static fn(PreparedStatement $one): int => $one->lastUse, $this->prepared);
            $oldest = (string) array_search(min($uses), $uses, true);
            $gone[] = $this->prepared[$oldest]->name;
            unset($this->prepared[$oldest]);
        }

        return array_values(array_diff($gone, [$statement->name, '']));
    }

    public function forget(string $sql): void
    {
        unset($this->prepared[$sql]);
    }

    public function forgetAll(): void
    {
        $this->prepared = $this->tentative = [];
    }

    /** @return list<string> names that the server should deallocate */
    public function endGeneration(): array
    {
        ++$this->generation;
        $names = array_map(static fn(PreparedStatement $one): string => $one->name, array_values($this->prepared));
        $this->forgetAll();

        return $names;
    }

    /** @return list<string> names to deallocate, of statements from the transaction that is rolled back */
    public function rollBack(): array
    {
        $names = array_map(
            static fn(PreparedStatement $one): string => $one->name,
            array_values(array_intersect_key($this->prepared, $this->tentative)),
        );
        $this->prepared = array_diff_key($this->prepared, $this->tentative);
        $this->tentative = [];

        return $names;
    }

    /** Keeps the statements of the finished transaction. */
    public function settle(): void
    {
        $this->tentative = [];
        $this->unsettled = false;
    }

    /** Stops keeping statements: a pooler gives the client different server sessions, which do not know them. */
    public function disable(): void
    {
        $this->maxStatements = 0;
        $this->prepared = [];
    }
}
