<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Postgres\Internal\SqlText;

/**
 * Tracks changes of the schema by the sessions of a pool. After each change, all of these sessions prepare their
 * statements again, because the server keeps the parameter types with which it has prepared a statement.
 */
final class SchemaChanges
{
    private const PATTERN = '/\bALTER\b/i';

    private const BLOCK_PATTERN = '~' . SqlText::COMMENT . '^(?:' . SqlText::BLANK . '|;)*+DO\b~i';

    /** @var \WeakMap<Preparation, true> */
    private readonly \WeakMap $preparations;

    public function __construct()
    {
        $this->preparations = new \WeakMap();
    }

    public function add(Preparation $preparation): void
    {
        $this->preparations[$preparation] = true;
    }

    /** @param string $tag '' if the statement failed; a DO block may have committed changes before its failure */
    public static function isChange(string $tag, string $sql): bool
    {
        return str_starts_with($tag, 'ALTER ')
            || \in_array($tag, ['DO', ''], true)
            && self::isChangingScript($sql)
            && preg_match(self::BLOCK_PATTERN, $sql) !== 0;
    }

    public static function isChangingScript(string $sql): bool
    {
        return preg_match(self::PATTERN, $sql) !== 0;
    }

    /** Returns whether another session than `$own` has sent an ALTER, and its transaction has not ended. */
    public function isOtherSessionChanging(Preparation $own): bool
    {
        foreach ($this->preparations as $preparation => $_) {
            if ($preparation !== $own && $preparation->isChangingSchema()) {
                return true;
            }
        }

        return false;
    }

    /** Drops the prepared statements of all sessions. Called after a change is sent, and when its transaction ends. */
    public function startGenerations(): void
    {
        foreach ($this->preparations as $preparation => $_) {
            $preparation->startGeneration();
        }
    }
}
