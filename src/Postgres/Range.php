<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * A range of PostgreSQL, such as int4range or tstzrange: what is between two bounds.
 *
 * Of whole numbers and dates the server makes [1,5] the same range [1,6).
 *
 * @see https://www.postgresql.org/docs/current/rangetypes.html
 */
final readonly class Range
{
    /** The bound, of the PHP type that the range's subtype has; null where it has none. */
    public mixed $lower;

    public mixed $upper;

    /** Whether the bound belongs to it; false where there is no bound. */
    public bool $lowerInclusive;

    public bool $upperInclusive;

    /** Whether there is nothing in it. It then has no bounds, and is not without bounds. */
    public bool $empty;

    /**
     * @param mixed $lower null for no bound
     * @param mixed $upper null for no bound
     * @param bool  $empty bounds then mean nothing; {@see self::empty()}
     */
    public function __construct(
        #[\SensitiveParameter]
        mixed $lower = null,
        #[\SensitiveParameter]
        mixed $upper = null,
        bool $lowerInclusive = true,
        bool $upperInclusive = false,
        bool $empty = false,
    ) {
        $this->lower = $empty ? null : $lower;
        $this->upper = $empty ? null : $upper;
        $this->lowerInclusive = $lowerInclusive && $this->lower !== null;
        $this->upperInclusive = $upperInclusive && $this->upper !== null;
        $this->empty = $empty;
    }

    public static function empty(): self
    {
        return new self(empty: true);
    }
}
