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
    private const QUOTED = '"((?:[^"\\\\]++|""|\\\\.)*+)"';

    private const BOUND = '(?:' . self::QUOTED . '|([^"\\\\,()\[\]]++))?+';

    private const RANGE_PATTERN = '/([\[(])' . self::BOUND . ',' . self::BOUND . '([\])])/As';

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
        if (preg_match(self::RANGE_PATTERN, $text, $parts, \PREG_UNMATCHED_AS_NULL, $at) !== 1) {
            throw ProtocolException::unreadableValue('range');
        }
        $at += \strlen($parts[0]);

        return new Range(
            $this->bound($parts[2], $parts[3]),
            $this->bound($parts[4], $parts[5]),
            $parts[1] === '[',
            $parts[6] === ']',
        );
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        if (!$value instanceof Range) {
            return Scalar::text($value);
        }

        return $value->empty ? 'empty' : \sprintf(
            '%s%s,%s%s',
            $value->lowerInclusive ? '[' : '(',
            $this->text($value->lower),
            $this->text($value->upper),
            $value->upperInclusive ? ']' : ')',
        );
    }

    private function bound(#[\SensitiveParameter] ?string $quoted, #[\SensitiveParameter] ?string $plain): mixed
    {
        if ($quoted !== null) {
            return $this->bound->decode(strtr($quoted, ['""' => '"', '\\"' => '"', '\\\\' => '\\']));
        }

        return $plain === null ? null : $this->bound->decode($plain);
    }

    private function text(#[\SensitiveParameter] mixed $bound): string
    {
        return $bound === null ? '' : '"' . addcslashes($this->bound->encode($bound), '"\\') . '"';
    }
}
