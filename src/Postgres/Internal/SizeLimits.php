<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/**
 * How much of what a server sends is read into memory. Looked up each time that something is large, since memory_limit may change.
 */
final readonly class SizeLimits
{
    /** Bytes up to which nothing is compared with a limit: no limit is lower. */
    public const FLOOR = 0x10_0000;

    /** Parts of memory_limit: while a value is read there are up to three copies of it. */
    private const OF_ROW = 4;
    private const OF_RESULT = 2;

    /** @param int|null $maxValueBytes null for a share of memory_limit */
    public function __construct(private ?int $maxValueBytes = null) {}

    /** Bytes of one row, or of one row of a COPY. */
    public function row(): int
    {
        return $this->maxValueBytes ?? max(self::FLOOR, intdiv(self::memory(), self::OF_ROW));
    }

    /** Bytes of rows that are held at the same time for one statement. */
    public static function result(): int
    {
        return max(self::FLOOR, intdiv(self::memory(), self::OF_RESULT));
    }

    private static function memory(): int
    {
        $limit = ini_parse_quantity(\ini_get('memory_limit'));

        return $limit > 0 ? $limit : \PHP_INT_MAX;
    }
}
