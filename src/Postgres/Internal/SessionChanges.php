<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/**
 * Detects by their text whether statements changed the session beyond their transactions. Examples are settings,
 * temporary tables, advisory locks, cursors, LISTEN, PREPARE and the seed of random(). Changes inside a function are
 * only detected by the function's name. Therefore a borrowed connection is always reset.
 */
final class SessionChanges
{
    /** Start of a statement. */
    private const STATEMENT_START = SqlText::COMMENT . '^(?:' . SqlText::BLANK . '|;)*+';

    /** Text after SET of a change for the transaction only. In "SET local.tenant = 1", local is part of a name. */
    private const TRANSACTION_LOCAL = '\s+(?:LOCAL|TRANSACTION|CONSTRAINTS)\s+[\w"]';

    private const SUSPECT_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:SET(?!'
        . self::TRANSACTION_LOCAL
        . ')|RESET|LISTEN|DECLARE|LOAD|DO|CALL'
        . '|PREPARE(?!\s+TRANSACTION\s+\')|DEALLOCATE|DISCARD|UNLISTEN|SECURITY)\b'
        . '|\b(?:set_config|setseed|dblink_connect\w*|pg_(?:try_)?advisory_(?:lock|unlock)\w*'
        . '|TEMP|TEMPORARY|pg_temp)\b|\bU&"~is';

    /** Settings that decide what a statement's text means. */
    private const MEANING_SETTINGS = 'search_path|role|session_authorization'
        . '|standard_conforming_strings|transform_null_equals';

    /** Text after SET or RESET that clearly names another setting. */
    private const OTHER_SETTING = '\s+(?:(?:LOCAL|SESSION)\s+)?(?:'
        . '(?!(?:' . self::MEANING_SETTINGS . '|ALL|AUTHORIZATION)\b)[a-z_][\w$.]*+\s*+(?:=|TO\b|;|$)'
        . '|TIME\s+ZONE\b|(?:TRANSACTION|CONSTRAINTS|CHARACTERISTICS)\s+[\w"])';

    private const MEANING_CHANGE_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:(?:SET|RESET)(?!'
        . self::OTHER_SETTING
        . ')|DISCARD|DO)\b'
        . '|\bset_config\b(?!\s*+\(\s*+\'(?!(?:' . self::MEANING_SETTINGS . ')\')[\w.]+\'\s*+,)'
        . '|\b(?:CREATE|INTO|LOCAL|GLOBAL|REPLACE)' . SqlText::BLANK . '+TEMP(?:ORARY)?\b|\bpg_temp\b|\bU&"~is';

    private const TRANSACTION_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|PREPARE)\b~i';

    private const ROLLBACK_PATTERN = '~' . self::STATEMENT_START . '(?:ROLLBACK|ABORT)\b~i';

    private const CHAIN_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:COMMIT|END|ROLLBACK|ABORT)\b.*\bAND'
        . SqlText::BLANK
        . '++CHAIN\b~is';

    private const PREPARED_PATTERN = '~\b(?:PREPARE|DEALLOCATE|DISCARD\s+ALL)\b~i';

    private const UNDO_STATEMENTS = 'SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; '
        . 'SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES';

    private bool $any = false;

    private bool $prepared = false;

    private bool $meaning = false;

    /** @param list<string> $setup statements that set the session up */
    public function __construct(private readonly array $setup) {}

    public static function mayChangeSession(string $sql): bool
    {
        return preg_match(self::SUSPECT_PATTERN, $sql) !== 0;
    }

    /**
     * Whether the statement may change what a text means: search_path, role or temporary tables make names refer to
     * other objects. Prepared statements are out of date then, which the server does not report.
     */
    public static function changesMeaning(string $sql): bool
    {
        return preg_match(self::MEANING_CHANGE_PATTERN, $sql) !== 0;
    }

    /** Whether the statement begins or ends a transaction or a savepoint. */
    public static function controlsTransaction(string $sql): bool
    {
        return preg_match(self::TRANSACTION_PATTERN, $sql) !== 0;
    }

    /** Whether the statement rolls back a transaction or a savepoint. */
    public static function rollsBack(string $sql): bool
    {
        return preg_match(self::ROLLBACK_PATTERN, $sql) !== 0;
    }

    /** Whether the statement ends a transaction and begins another at once. */
    public static function chainsTransactions(string $sql): bool
    {
        return stripos($sql, 'chain') !== false && preg_match(self::CHAIN_PATTERN, $sql) !== 0;
    }

    /** Whether the statement may prepare or deallocate statements. */
    public static function concernsPrepared(string $sql): bool
    {
        return preg_match(self::PREPARED_PATTERN, $sql) === 1;
    }

    /** Records a statement that was sent. Without text, any change is possible. */
    public function note(string $sql = ''): void
    {
        $this->any = true;
        $this->prepared = $this->prepared || self::concernsPrepared($sql);
        $this->meaning = $this->meaning || self::changesMeaning($sql);
    }

    public function hasChanges(): bool
    {
        return $this->any;
    }

    /** Whether statements were prepared or deallocated in SQL. Undoing that deallocates the driver's statements too. */
    public function concernPrepared(): bool
    {
        return $this->prepared;
    }

    /** Whether the meaning of statements may have changed. The prepared ones are out of date once that is undone. */
    public function concernMeaning(): bool
    {
        return $this->meaning;
    }

    /** Returns a script that undoes the changes in one round trip. random() gets an unknown seed. */
    public function undo(): string
    {
        $seed = \sprintf('SELECT pg_catalog.setseed(%.9F)', random_int(-999_999_999, 999_999_999) / 1e9);

        return implode(
            '; ',
            [self::UNDO_STATEMENTS, $seed, ...($this->prepared ? ['DEALLOCATE ALL'] : []), ...$this->setup],
        );
    }

    public function forget(): void
    {
        $this->any = $this->prepared = $this->meaning = false;
    }
}
