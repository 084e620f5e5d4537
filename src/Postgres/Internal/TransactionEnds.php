<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Whether a script has ended a transaction, by the tags of its commands: also where it begins another at once. */
final class TransactionEnds
{
    private bool $isCommitted = false;

    /** Of "ROLLBACK", or of "ROLLBACK TO" a savepoint, which has the same tag. */
    private bool $isRolledBack = false;

    private bool $beginsAgain = false;

    /** @param string $tag of the next command */
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
        return $this->isCommitted || $this->isRolledBack && ($this->beginsAgain || preg_match('~' . SqlText::COMMENT . '\bAND' . SqlText::BLANK . '++CHAIN\b~i', $sql) === 1);
    }
}
