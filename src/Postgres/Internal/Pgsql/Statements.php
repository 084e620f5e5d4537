<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

/** The statements that one connection has prepared: those used last. */
final class Statements
{
    /** @var array<string, Prepared> by their SQL, the one used last at the end */
    private array $prepared = [];

    private int $last = 0;

    /** @var list<string> names of those that gave way, and that the server still has */
    private array $gone = [];

    /** @param int $most 0 when none are kept, as behind a pooler that gives each transaction another connection */
    public function __construct(private int $most) {}

    public function find(string $sql): ?Prepared
    {
        $statement = $this->prepared[$sql] ?? null;
        if ($statement !== null && $this->most > 1) {
            unset($this->prepared[$sql]);
            $this->prepared[$sql] = $statement;
        }

        return $statement;
    }

    public function keepsAny(): bool
    {
        return $this->most > 0;
    }

    /** For the next statement. */
    public function name(): string
    {
        return 's' . ++$this->last;
    }

    public function add(string $sql, Prepared $statement): void
    {
        $this->prepared[$sql] = $statement;
        if (\count($this->prepared) > $this->most) {
            $this->forget(array_key_first($this->prepared));
        }
    }

    /** The server is to forget it as well. */
    public function forget(string $sql): void
    {
        if (isset($this->prepared[$sql])) {
            $this->gone[] = $this->prepared[$sql]->name;
            unset($this->prepared[$sql]);
        }
    }

    /** The server has forgotten them. */
    public function forgetAll(): void
    {
        $this->prepared = $this->gone = [];
    }

    /** The server does not know those that it had prepared: another does, for this is no connection of its own. */
    public function keepNone(): void
    {
        $this->most = 0;
        $this->forgetAll();
    }

    /** How many the server is still to forget. */
    public function countGone(): int
    {
        return \count($this->gone);
    }

    /** A script that has the server forget them. */
    public function deallocation(): string
    {
        $names = $this->gone;
        $this->gone = [];

        return 'DEALLOCATE ' . implode('; DEALLOCATE ', $names);
    }
}
