<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/**
 * Detects whether a script ended the transaction in which it runs. Uses the tags that the server sends for executed
 * commands, because the transaction status does not show the end if the script then begins another transaction.
 */
final class TransactionEndDetector
{
    private bool $isCommitted = false;

    /** Whether a command had the tag ROLLBACK. The command ROLLBACK TO SAVEPOINT has the same tag. */
    private bool $isRolledBack = false;

    /** Whether a command with the tag ROLLBACK was executed before the last BEGIN. */
    private bool $hasBegunAfterRollback = false;

    public function recordTag(string $tag): void
    {
        if ($tag === 'COMMIT' || $tag === 'PREPARE TRANSACTION') {
            $this->isCommitted = true;
        } elseif ($tag === 'ROLLBACK') {
            $this->isRolledBack = true;
        } elseif ($tag === 'BEGIN' || $tag === 'START TRANSACTION') {
            $this->hasBegunAfterRollback = $this->isRolledBack;
        }
    }

    /** Returns whether the transaction has ended. ROLLBACK counts only before BEGIN, or if `$sql` has AND CHAIN. */
    public function hasEnded(string $sql): bool
    {
        return $this->isCommitted
            || $this->isRolledBack
            && (
                $this->hasBegunAfterRollback
                || preg_match('~' . SqlText::COMMENT . '\bAND' . SqlText::BLANK . '++CHAIN\b~', strtoupper($sql)) !== 0
            );
    }
}
