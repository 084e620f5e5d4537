<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Range;

final readonly class MultirangeType implements ListValuedType
{
    public function __construct(private RangeType $range) {}

    /** @return list<Range> */
    public function decode(#[\SensitiveParameter] string $text): array
    {
        if ($text === '{}') {
            return [];
        }
        $ranges = [];
        $at = 0;
        $delimiter = '{';
        while (($text[$at] ?? '') === $delimiter) {
            $at++;
            $ranges[] = $this->range->read($text, $at);
            $delimiter = ',';
        }

        return $ranges !== [] && substr($text, $at) === '}'
            ? $ranges
            : throw ProtocolException::unreadableValue('multirange');
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        if (!\is_array($value)) {
            return Scalar::text($value);
        }
        if (!array_is_list($value)) {
            throw UnencodableException::of($value, 'it is not a list');
        }

        $texts = [];
        foreach ($value as $index => $range) {
            try {
                $texts[] = $this->range->encode($range);
            } catch (UnencodableException $failure) {
                throw $failure->within($index);
            }
        }

        return '{' . implode(',', $texts) . '}';
    }
}
