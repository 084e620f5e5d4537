<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

/** A range of bytes in a file: RFC 9110, 14. */
final readonly class ByteRange
{
    /** @param int $last offset of the last byte, which is included */
    private function __construct(public int $first, public int $last, private int $size) {}

    /**
     * Returns those ranges of a Range field that contain bytes of the file. The list may be empty.
     *
     * @return list<self>|null null to ignore the field, because it is malformed, has another unit, or the file is empty
     */
    public static function list(string $field, int $size): ?array
    {
        if ($size === 0 || preg_match('/^bytes=(.*+)$/Di', $field, $set) !== 1) {
            return null;
        }
        $ranges = [];
        foreach (explode(',', $set[1]) as $spec) {
            $spec = trim($spec, " \t");
            if ($spec === '') {
                continue;
            }
            if (preg_match('/^(\d*+)-(\d*+)$/D', $spec, $ends) !== 1 || !self::isRange($ends[1], $ends[2])) {
                return null;
            }
            $ranges[] = self::within($ends[1], $ends[2], $size);
        }

        return $ranges === [] ? null : array_values(array_filter($ranges));
    }

    public function length(): int
    {
        return $this->last - $this->first + 1;
    }

    public function contentRange(): string
    {
        return "bytes {$this->first}-{$this->last}/{$this->size}";
    }

    private static function isRange(string $first, string $last): bool
    {
        return $first !== '' && $last !== '' ? (int) $first <= (int) $last : $first !== $last;
    }

    /** Returns the part of a range that is in the file, or null. A cast to int limits a number to PHP_INT_MAX. */
    private static function within(string $first, string $last, int $size): ?self
    {
        if ($first === '') {
            return (int) $last === 0 ? null : new self(max(0, $size - (int) $last), $size - 1, $size);
        }

        return (int) $first >= $size
            ? null
            : new self((int) $first, min($last === '' ? \PHP_INT_MAX : (int) $last, $size - 1), $size);
    }
}
