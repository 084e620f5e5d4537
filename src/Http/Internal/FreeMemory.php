<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

/** Memory that bodies may use: PHP's memory_limit except an eighth for everything else. */
final readonly class FreeMemory
{
    private const RESERVED_DIVISOR = 8;

    private const MAX_REQUEST_SHARE = 0.75;

    /** Bytes. */
    private int $usable;

    /** @param int|null $limit bytes; null for the limit of this process */
    public function __construct(?int $limit = null)
    {
        $limit ??= ini_parse_quantity(\ini_get('memory_limit'));
        $this->usable = $limit <= 0 ? \PHP_INT_MAX >> 1 : $limit - intdiv($limit, self::RESERVED_DIVISOR);
    }

    public function allows(int $bytes): bool
    {
        if (memory_get_usage(true) <= $this->usable - $bytes) {
            return true;
        }
        gc_mem_caches(); // freed memory that PHP has kept counts as used otherwise

        return memory_get_usage(true) <= $this->usable - $bytes;
    }

    /** Returns whether a request may have this many bytes when there are no other requests. */
    public function couldAllow(int $bytes): bool
    {
        return $bytes <= $this->usable * self::MAX_REQUEST_SHARE;
    }
}
