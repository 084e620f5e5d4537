<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

/** The statements that one connection has prepared: those used last. */
final class Statements
{
    /** Kept unless something else is asked for. */
    public const MOST = 256;

    /** @var array<string, Prepared> by their SQL */
    private array $prepared = [];

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

    /** For the next statement; '' when none are kept. */
    public function name(): string
    {
        return $this->most === 0 ? '' : $this->prefix . ++$this->last;
    }

    /** @return list<string> names that gave way */
    public function add(string $sql, Prepared $statement): array
    {
        if ($this->most === 0) {
            return [];
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
        $this->prepared = [];
    }

    /** The server does not know those that it had prepared: another does, for this is no connection of its own. */
    public function keepNone(): void
    {
        $this->most = 0;
        $this->prepared = [];
    }
}
