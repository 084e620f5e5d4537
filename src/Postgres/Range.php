<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * A range of PostgreSQL, such as int4range or tstzrange: the values between two bounds.
 *
 * For whole numbers and dates, the server turns [1,5] into the equal range [1,6).
 *
 * @see https://www.postgresql.org/docs/current/rangetypes.html
 */
final readonly class Range
{
    /** The lower bound, of the PHP type for the range's subtype; null for no bound. */
    public mixed $lower;

    public mixed $upper;

    /** Whether the lower bound belongs to the range; false when there is none. */
    public bool $lowerInclusive;

    public bool $upperInclusive;

    /** Whether the range is empty. An empty range has null bounds, but is not unbounded. */
    public bool $empty;

    /**
     * @param mixed $lower null for no bound
     * @param mixed $upper null for no bound
     * @param bool $empty whether the range is empty, whatever the bounds are; {@see self::empty()}
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
