<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Checks whether memory for data is free. An eighth of PHP's memory_limit is the reserve for everything else. */
final readonly class FreeMemory
{
    private const RESERVED_DIVISOR = 8;

    /** Data counts as small if the free memory is at least this many times as large as the data. */
    private const SMALL_DATA_FACTOR = 16;

    private const MAX_GAP_BYTES = 0x2_0000;

    /** Share of the usable memory. If more memory is in use, free gaps between values are not likely. */
    private const MAX_USAGE_WITH_GAPS = 0.75;

    private const MAX_REQUEST_SHARE = 0.75;

    /** The memory_limit in bytes; without a limit, a number that the used memory never reaches. */
    private int $limit;

    /** The memory_limit without the reserve, in bytes. */
    private int $usable;

    /** @param int|null $limit bytes; 0 or less means no limit; null means the memory_limit of this process */
    public function __construct(?int $limit = null)
    {
        $limit ??= ini_parse_quantity(\ini_get('memory_limit'));
        $this->limit = $limit <= 0 ? \PHP_INT_MAX >> 1 : $limit;
        $this->usable = $this->limit - intdiv($this->limit, self::RESERVED_DIVISOR);
    }

    /** Returns the memory in use, as part of a message. */
    public static function usage(): string
    {
        $limit = ini_parse_quantity(\ini_get('memory_limit'));

        return memory_get_usage(true) . " of {$limit} bytes (memory_limit) are in use";
    }

    /** Returns a quarter of the memory_limit of this process in bytes, at most $maxBytes. */
    public static function quarterOfLimit(int $maxBytes): int
    {
        $limit = ini_parse_quantity(\ini_get('memory_limit'));

        return $limit <= 0 ? $maxBytes : min($maxBytes, intdiv($limit, 4));
    }

    public function allows(int $bytes): bool
    {
        return $this->isUsageAtMost($this->usable - $bytes);
    }

    /**
     * Returns whether `$bytes` more bytes are available for data that is partly in memory already. Allows more than
     * {@see allows()}: small data may use the reserve, and a few bytes may use memory that PHP has freed but kept.
     *
     * @param int $size size of the whole data, in bytes
     */
    public function allowsPart(int $bytes, int $size): bool
    {
        return $this->hasGap($bytes)
            || $this->isUsageAtMost(max($this->usable - $bytes, $this->limit - self::SMALL_DATA_FACTOR * $size));
    }

    /** Returns whether a request could use this many bytes if no other request used memory. */
    public function isWithinLimit(int $bytes): bool
    {
        return $bytes <= $this->usable * self::MAX_REQUEST_SHARE;
    }

    /** Returns whether the bytes very probably fit into a free gap between other values, because they are few. */
    private function hasGap(int $bytes): bool
    {
        return $bytes <= self::MAX_GAP_BYTES
            && memory_get_usage() <= $this->usable * self::MAX_USAGE_WITH_GAPS
            && memory_get_usage(true) <= ($this->usable + $this->limit) >> 1;
    }

    private function isUsageAtMost(int $bytes): bool
    {
        if (memory_get_usage(true) <= $bytes) {
            return true;
        }
        gc_mem_caches(); // otherwise, memory that PHP has freed but kept would count as used

        return memory_get_usage(true) <= $bytes;
    }
}
