<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;

/**
 * Statements that a pool has run, by their text. Those that only read and are short may share a session.
 *
 * A statement that may wait for a row lock never shares, however short it is. The statements behind it would wait too,
 * and the owner of the lock may be waiting for one of them.
 */
final class ShortStatements
{
    /** Maximum of remembered statements, and of their bytes. */
    private const MAX_STATEMENTS = 4_096;
    private const MAX_BYTES = 0x40_0000;

    private const READ_PATTERN = '~'
        . SqlText::COMMENT
        . '^(?:'
        . SqlText::BLANK
        . '|\()*+(?:SELECT|VALUES|TABLE|WITH)\b~i';

    /** Words of statements that write or lock. A false match only makes the pool more careful than necessary. */
    private const WRITE_PATTERN = '~\b(?:INSERT|UPDATE|DELETE|MERGE|INTO'
        . '|FOR\b.{0,40}\bSHARE|\w*advisory\w*lock\w*)\b~is';

    /** @var array<string, KnownStatement> by SQL */
    private array $known = [];

    private int $bytes = 0;

    public function find(string $sql): ?KnownStatement
    {
        return $this->known[$sql] ?? null;
    }

    /** @param int $nanoseconds time that the server took; negative when unknown */
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
        $this->known[$sql] = new KnownStatement($isPlain, $isPlain && self::reads($sql), $nanoseconds);
    }

    private static function reads(string $sql): bool
    {
        return preg_match(self::READ_PATTERN, $sql) === 1 && preg_match(self::WRITE_PATTERN, $sql) === 0;
    }
}
