<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** How much of the server's data is read into memory. Follows changes of memory_limit. */
final readonly class SizeLimits
{
    /** Bytes that are always allowed: no limit is lower. */
    public const MIN_BYTES = 0x10_0000;

    /** Divisors of memory_limit. While a value is read, up to three copies of it exist. */
    private const ROW_DIVISOR = 4;
    private const RESULT_DIVISOR = 2;

    /** @param int|null $maxValueBytes null for a share of memory_limit */
    public function __construct(private ?int $maxValueBytes = null) {}

    /** Returns the limit of one row, or of one row of a COPY, in bytes. */
    public function row(): int
    {
        return $this->maxValueBytes ?? max(self::MIN_BYTES, intdiv(self::memory(), self::ROW_DIVISOR));
    }

    /** Returns the limit of all rows that are held for one statement, in bytes. */
    public static function result(): int
    {
        return max(self::MIN_BYTES, intdiv(self::memory(), self::RESULT_DIVISOR));
    }

    private static function memory(): int
    {
        $limit = ini_parse_quantity(\ini_get('memory_limit'));

        return $limit > 0 ? $limit : \PHP_INT_MAX;
    }
}
