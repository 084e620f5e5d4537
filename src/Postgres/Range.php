<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The values between two bounds: a value of a range type such as int4range or tstzrange.
 *
 * For whole numbers and dates, the server turns [1,5] into the equal range [1,6).
 *
 * @see https://www.postgresql.org/docs/current/rangetypes.html
 */
final readonly class Range
{
    /** The lower bound, in the PHP type that {@see Result} lists for the bound's type; null for no bound. */
    public mixed $lower;

    /** The upper bound; null for no bound. */
    public mixed $upper;

    /** Whether the lower bound is part of the range; false without a lower bound. */
    public bool $lowerInclusive;

    /** Whether the upper bound is part of the range; false without an upper bound. */
    public bool $upperInclusive;

    /** Whether the range contains no value. If so, both bounds are null; in other ranges, null means "no bound". */
    public bool $empty;

    /**
     * @param mixed $lower null for no bound
     * @param mixed $upper null for no bound
     * @param bool $empty whether the range contains no value; if true, the bounds are ignored
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
