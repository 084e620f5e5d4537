<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\SqlText;

/**
 * The statements that one connection has prepared: those used last. They are those of one generation, within which the same text means the
 * same: what is prepared before search_path or role change has the types that it had then.
 */
final class Statements
{
    /** Kept unless something else is asked for. */
    public const MOST = 256;

    /** @var array<string, Prepared> by their SQL */
    private array $prepared = [];

    /** Counts generations. */
    public int $generation = 0;

    /** Whether the end of the transaction may leave some that do not fit. */
    public bool $unsettled = false;

    /** @var array<string, true> SQL of those that were prepared in the transaction that is open: a rollback may undo what they are made of */
    private array $tentative = [];

    /** Counts uses. */
    private int $clock = 0;

    private int $last = 0;

    /** What the names of no other begin with: behind a pooler several use the same session. */
    private readonly string $prefix;

    /** @param int $most 0 when none are kept, as behind a pooler that gives each transaction another connection */
    public function __construct(private int $most)
    {
        $this->prefix = 'spindle_' . bin2hex(random_bytes(4)) . '_';
    }

    public function find(string $sql): ?Prepared
    {
        $statement = $this->prepared[$sql] ?? null;
        if ($statement !== null) {
            $statement->lastUse = ++$this->clock;
        }

        return $statement;
    }

    /** For the next statement; '' when it is not kept. */
    public function name(string $sql): string
    {
        return $this->most === 0 || \strlen($sql) > SqlText::MOST_KEPT ? '' : $this->prefix . ++$this->last;
    }

    /**
     * @param bool $tentative whether it was prepared in a transaction
     *
     * @return list<string> names that gave way
     */
    public function add(string $sql, Prepared $statement, bool $tentative = false): array
    {
        if ($this->most === 0 || $statement->name === '') {
            return [];
        }
        if ($tentative) {
            $this->tentative[$sql] = $this->unsettled = true;
        }
        $gone = isset($this->prepared[$sql]) ? [$this->prepared[$sql]->name] : [];
        $statement->lastUse = ++$this->clock;
        $this->prepared[$sql] = $statement;
        if (\count($this->prepared) > $this->most) {
            $uses = array_map(static fn(Prepared $one): int => $one->lastUse, $this->prepared);
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

    /** @return list<string> names that the server is to forget */
    public function endGeneration(): array
    {
        ++$this->generation;
        $names = array_map(static fn(Prepared $one): string => $one->name, array_values($this->prepared));
        $this->forgetAll();

        return $names;
    }

    /** @return list<string> names that the server is to forget, of statements that were prepared in a transaction that is rolled back */
    public function rollBack(): array
    {
        $names = array_map(static fn(Prepared $one): string => $one->name, array_values(array_intersect_key($this->prepared, $this->tentative)));
        $this->prepared = array_diff_key($this->prepared, $this->tentative);
        $this->tentative = [];

        return $names;
    }

    /** No transaction is open: what was prepared stays. */
    public function settle(): void
    {
        $this->tentative = [];
        $this->unsettled = false;
    }

    /** The server does not know those that it had prepared: another does, for this is no connection of its own. */
    public function keepNone(): void
    {
        $this->most = 0;
        $this->prepared = [];
    }
}
