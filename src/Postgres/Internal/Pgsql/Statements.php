<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Spindle\Postgres\Internal\SqlText;

/** The statements that one connection has prepared: those used last. */
final class Statements
{
    /** Kept unless something else is asked for. */
    public const MOST = 256;

    /** Of those that are kept, which part gives way at a time: to have the server forget some takes a round trip. */
    private const PART = 16;

    /** @var array<string, Prepared> by their SQL, the one used last at the end; without a name those that were used once only */
    private array $prepared = [];

    private int $last = 0;

    /** What the names of no other begin with: behind a pooler several use the same session. */
    private readonly string $prefix;

    /** @var array<string, true> SQL of those that were prepared in the transaction that is open: a rollback may undo what they are made of */
    private array $tentative = [];

    /** @var list<string> names of those that gave way, and that the server still has */
    private array $gone = [];

    /** @param int $most 0 when none are kept, as behind a pooler that gives each transaction another connection */
    public function __construct(private int $most)
    {
        $this->prefix = 'spindle_' . bin2hex(random_bytes(4)) . '_';
    }

    public function find(string $sql): ?Prepared
    {
        $statement = $this->prepared[$sql] ?? null;
        if ($statement !== null && $this->most > 1) {
            unset($this->prepared[$sql]);
            $this->prepared[$sql] = $statement;
        }

        return $statement;
    }

    public function keeps(string $sql): bool
    {
        return $this->most > 0 && \strlen($sql) <= SqlText::MOST_KEPT;
    }

    /** For the next statement. */
    public function name(): string
    {
        return $this->prefix . ++$this->last;
    }

    /** Whether a message of the server names one of them. */
    public function areNamedIn(string $message): bool
    {
        return str_contains($message, $this->prefix);
    }

    /** Before another is added. */
    public function makeRoom(): void
    {
        if (\count($this->prepared) >= $this->most) {
            $part = max(1, intdiv($this->most, self::PART));
            array_map($this->forget(...), array_map(strval(...), \array_slice(array_keys($this->prepared), 0, $part)));
        }
    }

    /** @param bool $tentative whether it was prepared in a transaction */
    public function add(string $sql, Prepared $statement, bool $tentative): Prepared
    {
        if ($tentative) {
            $this->tentative[$sql] = true;
        }

        return $this->prepared[$sql] = $statement;
    }

    /** The server is to forget it as well. */
    public function forget(string $sql): void
    {
        $name = $this->prepared[$sql]->name ?? '';
        if ($name !== '') {
            $this->gone[] = $name;
        }
        unset($this->prepared[$sql]);
    }

    /** The server is to forget one that nobody has added. */
    public function discard(string $name): void
    {
        $this->gone[] = $name;
    }

    /** The server has forgotten them. */
    public function forgetAll(): void
    {
        $this->prepared = $this->gone = [];
    }

    /** The same text may mean something else by now, so the server is to forget them all. */
    public function endGeneration(): void
    {
        array_map($this->forget(...), array_map(strval(...), array_keys($this->prepared)));
    }

    /** A transaction was rolled back: the server is to forget those that were prepared in it. */
    public function rollBack(): void
    {
        array_map($this->forget(...), array_map(strval(...), array_keys(array_intersect_key($this->tentative, $this->prepared))));
        $this->tentative = [];
    }

    /** No transaction is open: what was prepared stays. */
    public function settle(): void
    {
        $this->tentative = [];
    }

    /** The server does not know those that it had prepared: another does, for this is no connection of its own. */
    public function keepNone(): void
    {
        $this->most = 0;
        $this->forgetAll();
    }

    /** Whether there are some that the server is still to forget. */
    public function areGone(): bool
    {
        return $this->gone !== [];
    }

    /** A script that has the server forget them. */
    public function deallocation(): string
    {
        $names = $this->gone;
        $this->gone = [];

        return 'DEALLOCATE ' . implode('; DEALLOCATE ', $names);
    }
}
