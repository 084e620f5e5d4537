<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

/** Checks whether there is memory for a body. An eighth of PHP's memory_limit is kept free for everything else. */
final readonly class FreeMemory
{
    private const RESERVED_DIVISOR = 8;

    /** Maximum share of the usable memory for one request. */
    private const MAX_REQUEST_SHARE = 0.75;

    /** The memory_limit without the reserve, in bytes. */
    private int $usable;

    /** @param int|null $limit bytes; 0 or less means no limit; null means the memory_limit of this process */
    public function __construct(?int $limit = null)
    {
        $limit ??= ini_parse_quantity(\ini_get('memory_limit'));
        $this->usable = $limit <= 0 ? \PHP_INT_MAX >> 1 : $limit - intdiv($limit, self::RESERVED_DIVISOR);
    }

    /** Returns whether this many further bytes are available at present. */
    public function allows(int $bytes): bool
    {
        if (memory_get_usage(true) <= $this->usable - $bytes) {
            return true;
        }
        gc_mem_caches(); // otherwise, memory that PHP has freed but kept would count as used

        return memory_get_usage(true) <= $this->usable - $bytes;
    }

    /** Returns whether a request could use this many bytes if no other request used memory. */
    public function isWithinLimit(int $bytes): bool
    {
        return $bytes <= $this->usable * self::MAX_REQUEST_SHARE;
    }
}
