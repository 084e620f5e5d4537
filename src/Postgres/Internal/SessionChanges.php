<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/**
 * Whether statements have changed a session beyond their transactions, as far as their text tells: settings, temporary tables, advisory
 * locks, cursors, LISTEN, PREPARE, the seed of random(). A change that a function makes goes unnoticed unless the function's name tells of
 * it. Therefore a borrowed connection is reset in any case.
 */
final class SessionChanges
{
    /** Where a statement begins. */
    private const BEGINNING = SqlText::COMMENT . '^(?:' . SqlText::BLANK . '|;)*+';

    /** What SET changes for the transaction only. "SET local.tenant = 1" is none of these: the parameter is named so. */
    private const TRANSACTION_LOCAL = '\s+(?:LOCAL|TRANSACTION|CONSTRAINTS)\s+[\w"]';

    private const SUSPECT = '~' . self::BEGINNING . '(?:SET(?!' . self::TRANSACTION_LOCAL . ')|RESET|LISTEN|DECLARE|LOAD|DO|CALL'
        . '|PREPARE(?!\s+TRANSACTION\s+\')|DEALLOCATE|DISCARD|UNLISTEN|SECURITY)\b'
        . '|\b(?:set_config|setseed|dblink_connect\w*|pg_(?:try_)?advisory_(?:lock|unlock)\w*|TEMP|TEMPORARY|pg_temp)\b|\bU&"~is';

    /** Settings that decide what a statement's text means. */
    private const MEANING = 'search_path|role|session_authorization|standard_conforming_strings|transform_null_equals';

    /** What stands behind SET or RESET where the setting is plainly another one. */
    private const OTHER_SETTING = '\s+(?:(?:LOCAL|SESSION)\s+)?(?:'
        . '(?!(?:' . self::MEANING . '|ALL|AUTHORIZATION)\b)[a-z_][\w$.]*+\s*+(?:=|TO\b|;|$)'
        . '|TIME\s+ZONE\b|(?:TRANSACTION|CONSTRAINTS|CHARACTERISTICS)\s+[\w"])';

    private const CHANGES_MEANING = '~' . self::BEGINNING . '(?:(?:SET|RESET)(?!' . self::OTHER_SETTING . ')|DISCARD|DO)\b'
        . '|\bset_config\b(?!\s*+\(\s*+\'(?!(?:' . self::MEANING . ')\')[\w.]+\'\s*+,)'
        . '|\b(?:CREATE|INTO|LOCAL|GLOBAL|REPLACE)' . SqlText::BLANK . '+TEMP(?:ORARY)?\b|\bpg_temp\b|\bU&"~is';

    private const TRANSACTIONAL = '~' . self::BEGINNING . '(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|PREPARE)\b~i';

    private const ROLLBACK = '~' . self::BEGINNING . '(?:ROLLBACK|ABORT)\b~i';

    private const CHAIN = '~' . self::BEGINNING . '(?:COMMIT|END|ROLLBACK|ABORT)\b.*\bAND' . SqlText::BLANK . '++CHAIN\b~is';

    private const PREPARED = '~\b(?:PREPARE|DEALLOCATE|DISCARD\s+ALL)\b~i';

    private const UNDO = 'SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES';

    private bool $any = false;

    private bool $prepared = false;

    private bool $meaning = false;

    /** @param list<string> $setup what the session was set up with */
    public function __construct(private readonly array $setup) {}

    public static function suspects(string $sql): bool
    {
        return preg_match(self::SUSPECT, $sql) !== 0;
    }

    /**
     * Whether the same text may mean something else after it: by search_path, role or temporary tables its names are those of other things.
     * Statements that were prepared before are out of date then, and the server does not report it: it keeps their parameters' types.
     */
    public static function changesMeaning(string $sql): bool
    {
        return preg_match(self::CHANGES_MEANING, $sql) !== 0;
    }

    /** Whether it begins or ends a transaction, or a part of one. */
    public static function controlsTransaction(string $sql): bool
    {
        return preg_match(self::TRANSACTIONAL, $sql) !== 0;
    }

    /** Whether it rolls back a transaction, or a part of one. */
    public static function rollsBack(string $sql): bool
    {
        return preg_match(self::ROLLBACK, $sql) !== 0;
    }

    /** Whether it ends a transaction and begins another at once. */
    public static function chains(string $sql): bool
    {
        return stripos($sql, 'chain') !== false && preg_match(self::CHAIN, $sql) !== 0;
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
        $this->meaning = $this->meaning || self::changesMeaning($sql);
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

    /** Whether statements may mean something else since, so that those that are prepared do not fit once it is undone. */
    public function concernMeaning(): bool
    {
        return $this->meaning;
    }

    /** A script that undoes them, in one round trip. A seed can't be taken back, so random() gets one that nobody knows. */
    public function undo(): string
    {
        $seed = \sprintf('SELECT pg_catalog.setseed(%.9F)', random_int(-999_999_999, 999_999_999) / 1e9);

        return implode('; ', [self::UNDO, $seed, ...($this->prepared ? ['DEALLOCATE ALL'] : []), ...$this->setup]);
    }

    public function forget(): void
    {
        $this->any = $this->prepared = $this->meaning = false;
    }
}
