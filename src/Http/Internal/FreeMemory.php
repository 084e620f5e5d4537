<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

/** What PHP's memory_limit leaves for bodies: an eighth of it is for all else. */
final readonly class FreeMemory
{
    private const SHARE_OF_OTHERS = 8;

    private const SHARE_OF_ONE = 0.75;

    /** Bytes. */
    private int $usable;

    /** @param int|null $limit bytes; null for that of this process */
    public function __construct(?int $limit = null)
    {
        $limit ??= ini_parse_quantity(\ini_get('memory_limit'));
        $this->usable = $limit <= 0 ? \PHP_INT_MAX >> 1 : $limit - intdiv($limit, self::SHARE_OF_OTHERS);
    }

    public function allows(int $bytes): bool
    {
        if (memory_get_usage(true) <= $this->usable - $bytes) {
            return true;
        }
        gc_mem_caches(); // what PHP has kept of memory that was freed counts as well

        return memory_get_usage(true) <= $this->usable - $bytes;
    }

    /** Whether one request may have so many bytes where there are no others. */
    public function couldAllow(int $bytes): bool
    {
        return $bytes <= $this->usable * self::SHARE_OF_ONE;
    }
}
