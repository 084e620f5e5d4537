<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/**
 * Whether statements have changed a session beyond their transactions, as far as their text tells: settings, temporary tables, advisory
 * locks, cursors, LISTEN, PREPARE. What a function changes that says nothing of it by its name goes unnoticed; so whoever borrowed
 * the connection itself has it reset in any case.
 */
final class SessionChanges
{
    /** Where a statement begins. */
    private const BEGINNING = SqlText::COMMENT . '^(?:' . SqlText::BLANK . '|;)*+';

    private const SUSPECT = '~' . self::BEGINNING . '(?:SET(?!\s+(?:LOCAL|TRANSACTION|CONSTRAINTS)\b)|RESET|LISTEN|DECLARE|LOAD|DO|CALL|PREPARE(?!\s+TRANSACTION\b)|DEALLOCATE|DISCARD|UNLISTEN|SECURITY)\b'
        . '|\b(?:set_config|dblink_connect\w*|pg_(?:try_)?advisory_(?:lock|unlock)\w*|TEMP|TEMPORARY|pg_temp)\b|\bU&"~is';

    private const TRANSACTIONAL = '~' . self::BEGINNING . '(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|PREPARE)\b~i';

    private const PREPARED = '~\b(?:PREPARE|DEALLOCATE|DISCARD\s+ALL)\b~i';

    private const UNDO = 'SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES';

    private bool $any = false;

    private bool $prepared = false;

    /** @param list<string> $setup what the session was set up with */
    public function __construct(private readonly array $setup) {}

    public static function suspects(string $sql): bool
    {
        return preg_match(self::SUSPECT, $sql) !== 0;
    }

    /** Whether it begins or ends a transaction, or a part of one. */
    public static function controlsTransaction(string $sql): bool
    {
        return preg_match(self::TRANSACTIONAL, $sql) !== 0;
    }

    /** Whether it may prepare or forget statements. */
    public static function concernsPrepared(string $sql): bool
    {
        return preg_match(self::PREPARED, $sql) === 1;
    }

    /** Something was sent whose text is suspect, or not looked at. */
    public function note(string $sql = ''): void
    {
        $this->any = true;
        $this->prepared = $this->prepared || self::concernsPrepared($sql);
    }

    public function any(): bool
    {
        return $this->any;
    }

    /** Whether statements were prepared or forgotten in SQL: those that the driver has prepared go with them. */
    public function concernPrepared(): bool
    {
        return $this->prepared;
    }

    /** A script that undoes them, in one round trip. */
    public function undo(): string
    {
        return implode('; ', [self::UNDO, ...($this->prepared ? ['DEALLOCATE ALL'] : []), ...$this->setup]);
    }

    public function forget(): void
    {
        $this->any = $this->prepared = false;
    }
}
