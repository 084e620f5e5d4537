<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Limits, in bytes, for data that is read into memory. Each call reads memory_limit, because the value may change. */
final readonly class SizeLimits
{
    public const MIN_BYTES = 0x10_0000;

    /** Rows and results of up to this size are read and decoded without a check of the free memory. */
    public const UNCHECKED_BYTES = 0x1_0000;

    /** A row may use a quarter of memory_limit, because up to three copies of a value exist at the same time. */
    private const ROW_DIVISOR = 4;
    private const RESULT_DIVISOR = 2;

    /** @param int|null $maxRowBytes limit for a row; null for a quarter of memory_limit, but at least MIN_BYTES */
    public function __construct(private ?int $maxRowBytes = null) {}

    /** Returns the limit for one row of a result or of a COPY. */
    public function row(): int
    {
        return $this->maxRowBytes ?? max(self::MIN_BYTES, intdiv(self::memory(), self::ROW_DIVISOR));
    }

    /** Returns the limit for all rows of one statement that are in memory. */
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
