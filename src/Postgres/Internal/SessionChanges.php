<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/**
 * Detects from a statement's text whether the statement may change session state, such as settings, temporary tables,
 * advisory locks, cursors, channels, prepared statements and the seed of random(). A change by a function is detected
 * only if the patterns below name the function. So a connection from acquire() is reset even if nothing was detected.
 *
 * The patterns match text in capitals: strtoupper() does not depend on the locale, but the modifier i does.
 */
final class SessionChanges
{
    /** Matches the start of a text, up to its first statement. */
    private const STATEMENT_START = SqlText::COMMENT . '^(?:' . SqlText::BLANK . '|;)*+';

    /**
     * Matches the text after SET if the change lasts only until the transaction ends. The keyword must be followed by
     * a space: in "SET local.tenant = 1", local is the beginning of a setting's name.
     */
    private const TRANSACTION_LOCAL = '\s+(?:LOCAL|TRANSACTION|CONSTRAINTS)\s+[\w"]';

    /** Matches an update of the view pg_settings, which does the same as SET. */
    private const SETTINGS_UPDATE = '\bUPDATE\b(?:' . SqlText::BLANK . '|["(.]|ONLY\b|PG_CATALOG\b)*+PG_SETTINGS\b';

    private const SESSION_CHANGE_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:SET(?!'
        . self::TRANSACTION_LOCAL
        . ')|RESET|LISTEN|DECLARE|LOAD|DO|CALL'
        . '|PREPARE(?!\s+TRANSACTION\s+\')|DEALLOCATE|DISCARD|UNLISTEN|SECURITY)\b'
        . '|\b(?:SET_CONFIG|SETSEED|DBLINK_CONNECT\w*|PG_(?:TRY_)?ADVISORY_(?:LOCK|UNLOCK)\w*'
        . '|TEMP|TEMPORARY|PG_TEMP)\b|\bU&"|'
        . self::SETTINGS_UPDATE
        . '~s';

    /** Settings that change the meaning of names in a statement, or of values such as '2026-01-31'. */
    private const MEANING_SETTINGS = 'SEARCH_PATH|ROLE|SESSION_AUTHORIZATION'
        . '|STANDARD_CONFORMING_STRINGS|TRANSFORM_NULL_EQUALS'
        . '|TIMEZONE|TIMEZONE_ABBREVIATIONS|DATESTYLE|INTERVALSTYLE|ARRAY_NULLS|LC_MONETARY|XMLOPTION';

    /** Matches the text after SET or RESET if the text certainly names a setting outside {@see MEANING_SETTINGS}. */
    private const OTHER_SETTING = '\s+(?:(?:LOCAL|SESSION)\s+)?(?:'
        . '(?!(?:' . self::MEANING_SETTINGS . '|ALL|AUTHORIZATION)\b)[A-Z_][\w$.]*+\s*+(?:=|TO\b|;|$)'
        . '|(?:TRANSACTION|CONSTRAINTS|CHARACTERISTICS)\s+[\w"])';

    private const MEANING_CHANGE_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:(?:SET|RESET)(?!'
        . self::OTHER_SETTING
        . ')|DISCARD|DO|CREATE|ALTER|DROP|GRANT|REVOKE|IMPORT|EXPLAIN(?=\b.*\b(?:CREATE|INTO)\b))\b'
        . '|\bSET_CONFIG\b(?!\s*+\(\s*+\'(?!(?:' . self::MEANING_SETTINGS . ')\')[\w.]+\'\s*+,)'
        . '|\b(?:CREATE|INTO|LOCAL|GLOBAL|REPLACE)' . SqlText::BLANK . '+TEMP(?:ORARY)?\b|\bPG_TEMP\b|\bU&"|'
        . self::SETTINGS_UPDATE
        . '~s';

    /** Matches SELECT … INTO, and texts in which a string contains these words. Does not match INSERT INTO. */
    private const INTO_PATTERN = '~\bSELECT\b.*(?<!INSERT|MERGE|\s)\s*+\bINTO\b~s';

    private const TRANSACTION_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|PREPARE)\b~';

    private const BEGIN_PATTERN = '~' . self::STATEMENT_START . '(?:BEGIN|START)\b~';

    private const ROLLBACK_PATTERN = '~' . self::STATEMENT_START . '(?:ROLLBACK|ABORT)\b~';

    private const CHAIN_PATTERN = '~'
        . self::STATEMENT_START
        . '(?:COMMIT|END|ROLLBACK|ABORT)\b.*\bAND'
        . SqlText::BLANK
        . '++CHAIN\b~s';

    private const PREPARED_PATTERN = '~\b(?:PREPARE|DEALLOCATE|DISCARD\s+ALL)\b~';

    private const UNDO_STATEMENTS = 'SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; '
        . 'SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES';

    public bool $hasAny = false;

    /** Whether PREPARE or DEALLOCATE may have been used. If so, {@see undoScript()} deallocates all statements. */
    public bool $preparedMayDiffer = false;

    /** Whether SQL texts may have another meaning now. If so, {@see undoScript()} restores their meaning. */
    public bool $meaningMayDiffer = false;

    /** @param list<string> $setup statements that set up the session, repeated at the end of {@see undoScript()} */
    public function __construct(private readonly array $setup) {}

    /** Returns whether the statement may change session state that outlasts its transaction. */
    public static function mayChangeSession(string $sql): bool
    {
        return preg_match(self::SESSION_CHANGE_PATTERN, strtoupper($sql)) !== 0;
    }

    /**
     * Returns whether the statement may change what the text of other statements means. For example, with another
     * search_path, role or temporary table, names refer to other objects. The server does not report all such changes.
     * So if this method returns true, the client must not use statements that it prepared before.
     */
    public static function mayChangeMeaning(string $sql): bool
    {
        return preg_match(self::MEANING_CHANGE_PATTERN, strtoupper($sql)) !== 0;
    }

    /** Returns whether the statement may be SELECT … INTO, which creates a table and returns no columns. */
    public static function mayCreateTable(string $sql): bool
    {
        return stripos($sql, 'into') !== false && preg_match(self::INTO_PATTERN, strtoupper($sql)) !== 0;
    }

    public static function controlsTransaction(string $sql): bool
    {
        return preg_match(self::TRANSACTION_PATTERN, strtoupper($sql)) !== 0;
    }

    public static function beginsTransaction(string $sql): bool
    {
        return preg_match(self::BEGIN_PATTERN, strtoupper($sql)) === 1;
    }

    public static function rollsBack(string $sql): bool
    {
        return preg_match(self::ROLLBACK_PATTERN, strtoupper($sql)) !== 0;
    }

    public static function chainsTransactions(string $sql): bool
    {
        return stripos($sql, 'chain') !== false && preg_match(self::CHAIN_PATTERN, strtoupper($sql)) !== 0;
    }

    /** Returns whether the statement may prepare or deallocate statements in SQL. */
    public static function mayChangePrepared(string $sql): bool
    {
        return preg_match(self::PREPARED_PATTERN, strtoupper($sql)) === 1;
    }

    /**
     * Records that a statement may have changed the session.
     *
     * @param string $sql the statement, or '' if the statement is unknown. An unknown statement is assumed to change
     *     neither prepared statements nor the meaning of SQL
     */
    public function record(string $sql = ''): void
    {
        $this->hasAny = true;
        $this->preparedMayDiffer = $this->preparedMayDiffer || self::mayChangePrepared($sql);
        $this->meaningMayDiffer = $this->meaningMayDiffer || self::mayChangeMeaning($sql);
    }

    /** Records a script. Some patterns match only a first statement, so a second one counts as a change of meaning. */
    public function recordScript(string $sql): void
    {
        $this->record($sql);
        $this->meaningMayDiffer = $this->meaningMayDiffer || str_contains(rtrim($sql, "; \n\r\t\v\f"), ';');
    }

    /** Returns a script that undoes the changes in one round trip, and gives random() a new random seed. */
    public function undoScript(): string
    {
        $deallocation = $this->preparedMayDiffer ? ['DEALLOCATE ALL'] : [];

        return implode('; ', [self::UNDO_STATEMENTS, self::newSeed(), ...$deallocation, ...$this->setup]);
    }

    /** Returns a statement that gives random() a new random seed. DISCARD ALL does not reset the seed. */
    public static function newSeed(): string
    {
        return \sprintf('SELECT pg_catalog.setseed(%.9F)', random_int(-999_999_999, 999_999_999) / 1e9);
    }

    public function clear(): void
    {
        $this->hasAny = $this->preparedMayDiffer = $this->meaningMayDiffer = false;
    }
}
