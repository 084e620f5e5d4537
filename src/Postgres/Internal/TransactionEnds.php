<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Tracks by the tags of a script's commands whether one ended a transaction, also when another began at once. */
final class TransactionEnds
{
    private bool $isCommitted = false;

    /** Whether the last tag was ROLLBACK. "ROLLBACK TO" a savepoint has the same tag. */
    private bool $isRolledBack = false;

    private bool $beginsAgain = false;

    /** @param string $tag tag of the next command */
    public function see(string $tag): void
    {
        if ($tag === 'COMMIT' || $tag === 'PREPARE TRANSACTION') {
            $this->isCommitted = true;
        } elseif ($tag === 'ROLLBACK') {
            $this->isRolledBack = true;
        } elseif ($tag === 'BEGIN' || $tag === 'START TRANSACTION') {
            $this->beginsAgain = $this->isRolledBack;
        }
    }

    public function haveEnded(string $sql): bool
    {
        return $this->isCommitted
            || $this->isRolledBack
            && (
                $this->beginsAgain
                || preg_match('~' . SqlText::COMMENT . '\bAND' . SqlText::BLANK . '++CHAIN\b~i', $sql) === 1
            );
    }
}
