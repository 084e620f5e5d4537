<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Encodes values of different kinds, each value separately from the others:
 *
 *     u32 count | u8 kind of each value | u32 length of each value | bytes of each value
 *
 * A method of an object may throw when PHP serializes or unserializes a value. Because each value is encoded
 * separately, only the task of this value then fails.
 */
final class ValuePacking
{
    private string $kinds = '';
    private string $lengths = '';
    public string $bytes = '';

    public function add(int $kind, string $bytes): void
    {
        $this->kinds .= \chr($kind);
        $this->lengths .= pack('V', \strlen($bytes));
        $this->bytes = $this->bytes === '' ? $bytes : $this->bytes . $bytes;
    }

    /** @param list<bool|int|float|string|null> $values */
    public function addPlain(array $values): void
    {
        foreach ($values as $value) {
            if (\is_string($value)) {
                $this->add(WorkerProtocol::STRING, $value);
            } else {
                $this->add(
                    WorkerProtocol::SERIALIZED,
                    \is_float($value) ? ValueSerializer::serializeUnchecked($value) : serialize($value),
                );
            }
        }
    }

    public function count(): int
    {
        return \strlen($this->kinds);
    }

    public function size(): int
    {
        return \strlen($this->bytes);
    }

    /** Returns the header, which precedes {@see $bytes}. */
    public function head(): string
    {
        return pack('V', \strlen($this->kinds)) . $this->kinds . $this->lengths;
    }

    /**
     * Encodes plain values together. This is faster than encoding each value separately, and fastest for integers.
     *
     * @param list<bool|int|float|string|null> $values
     * @param bool                             $integers whether all values are integers
     */
    public static function encodeList(array $values, bool $integers): string
    {
        return $integers ? 'q' . pack('q*', ...$values) : ValueSerializer::serializeUnchecked($values);
    }

    /** @return list<bool|int|float|string|null> the values that {@see encodeList()} has encoded */
    public static function decodeList(string $bytes, int $at = 0): array
    {
        /** @var array<bool|int|float|string|null> $values */
        $values = $bytes[$at] === 'q'
            ? unpack('q*', $bytes, $at + 1)
            : ValueSerializer::unserializeData($at === 0 ? $bytes : substr($bytes, $at));

        return array_values($values);
    }

    /** Converts the result of {@see encodeList()} to the format that {@see decode()} reads. */
    public static function ofList(string $list): string
    {
        $packing = new self();
        $packing->addPlain(self::decodeList($list));

        return $packing->head() . $packing->bytes;
    }

    /** @return array{string, list<string>} kinds, one byte for each value, and the values */
    public static function decode(string $packed, int $at = 0): array
    {
        /** @var array{1: int} $count */
        $count = unpack('V', $packed, $at);
        $kinds = substr($packed, $at + 4, $count[1]);
        $at += 4 + $count[1];
        /** @var array<int, int> $lengths */
        $lengths = unpack("V{$count[1]}", $packed, $at);
        $at += 4 * $count[1];
        $values = [];
        foreach ($lengths as $length) {
            $values[] = substr($packed, $at, $length);
            $at += $length;
        }

        return [$kinds, $values];
    }
}
