<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;

/**
 * Statements that a pool has run, by their text. Short statements that only read may share a session. A statement whose
 * text locks rows never shares a session, even if it is short. While such a statement waits for a lock, later
 * statements of a shared session would wait, too. If the lock's owner waited for one of them, both waits would never
 * end. For other locks, such as those of functions, see {@see PooledSessions::postponeStalled()}.
 */
final class KnownStatements
{
    /** Maximum numbers of statements and of bytes of SQL. Beyond either limit, all earlier statements are removed. */
    private const MAX_STATEMENTS = 4_096;
    private const MAX_BYTES = 0x40_0000;

    private const READ_PATTERN = '~'
        . SqlText::COMMENT
        . '^(?:'
        . SqlText::BLANK
        . '|\()*+(?:SELECT|VALUES|TABLE|WITH)\b~';

    /** Keywords of statements that write or lock. A false match is harmless: the statement uses a session alone. */
    private const WRITE_PATTERN = '~\b(?:INSERT|UPDATE|DELETE|MERGE|INTO'
        . '|FOR\b.{0,40}\bSHARE|\w*ADVISORY\w*LOCK\w*)\b~s';

    /** @var array<string, KnownStatement> by SQL */
    private array $known = [];

    private int $bytes = 0;

    public function find(string $sql): ?KnownStatement
    {
        return $this->known[$sql] ?? null;
    }

    /** @param int $nanoseconds time of an execution on the server; negative when unknown */
    public function learn(string $sql, int $nanoseconds): void
    {
        if (isset($this->known[$sql])) {
            $this->known[$sql]->learn($nanoseconds);

            return;
        }
        $length = \strlen($sql);
        if ($length > SqlText::MAX_CACHED_BYTES) {
            return;
        }
        $this->bytes += $length;
        if (\count($this->known) >= self::MAX_STATEMENTS || $this->bytes > self::MAX_BYTES) {
            $this->known = [];
            $this->bytes = $length;
        }
        $isPlain = SqlText::isRepeatable($sql)
            && !SessionChanges::mayChangeSession($sql)
            && !SessionChanges::controlsTransaction($sql);
        $this->known[$sql] = new KnownStatement($isPlain, $isPlain && self::isShareableRead($sql), $nanoseconds);
    }

    private static function isShareableRead(string $sql): bool
    {
        $sql = strtoupper($sql);

        return preg_match(self::READ_PATTERN, $sql) === 1 && preg_match(self::WRITE_PATTERN, $sql) === 0;
    }
}
