<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Range;

/**
 * Converts ranges to and from {@see Range}. `$bound` converts the bounds of a range.
 *
 * @see https://www.postgresql.org/docs/current/rangetypes.html#RANGETYPES-IO
 */
final readonly class RangeType implements Type
{
    public function __construct(private Type $bound) {}

    public function decode(#[\SensitiveParameter] string $text): Range
    {
        if ($text === 'empty') {
            return Range::empty();
        }
        $at = 0;
        $range = $this->read($text, $at);

        return $at === \strlen($text) ? $range : throw ProtocolException::unreadableValue('range');
    }

    /** @param int $at offset of the range; this method sets it to the offset after the range */
    public function read(#[\SensitiveParameter] string $text, int &$at): Range
    {
        $start = $text[$at++] ?? '';
        $lower = $this->readBound($text, $at);
        $delimiter = $text[$at++] ?? '';
        $upper = $this->readBound($text, $at);
        $end = $text[$at++] ?? '';
        if (!\in_array("{$start}{$delimiter}{$end}", ['[,]', '[,)', '(,]', '(,)'], true)) {
            throw ProtocolException::unreadableValue('range');
        }

        return new Range($lower, $upper, $start === '[', $end === ']');
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        if (!$value instanceof Range) {
            return Scalar::text($value);
        }
        $bounds = "{$this->text($value->lower)},{$this->text($value->upper)}";

        return $value->empty
            ? 'empty'
            : ($value->lowerInclusive ? '[' : '(') . $bounds . ($value->upperInclusive ? ']' : ')');
    }

    /** @param int $at offset of the bound; this method sets it to the offset after the bound */
    private function readBound(#[\SensitiveParameter] string $text, int &$at): mixed
    {
        $start = $at;
        if (($text[$at] ?? '') !== '"') {
            $at += strcspn($text, '"\\,()[]', $at);

            return $at === $start ? null : $this->bound->decode(substr($text, $start, $at - $start));
        }
        do { // a doubled quotation mark ends one part and begins another
            $at += 1 + strcspn($text, '"\\', $at + 1);
            while (($text[$at] ?? '') === '\\') {
                $at += 2;
                $at += strcspn($text, '"\\', $at);
            }
            if (($text[$at++] ?? '') !== '"') {
                throw ProtocolException::unreadableValue('range');
            }
        } while (($text[$at] ?? '') === '"');
        $quoted = substr($text, $start + 1, $at - $start - 2);

        return $this->bound->decode(strtr($quoted, ['""' => '"', '\\"' => '"', '\\\\' => '\\']));
    }

    private function text(#[\SensitiveParameter] mixed $bound): string
    {
        return $bound === null ? '' : '"' . addcslashes($this->bound->encode($bound), '"\\') . '"';
    }
}
