<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\FreeMemory;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\ResultTooLargeException;

/** One or more received rows, which stay encoded until they are read. */
final class EncodedRows
{
    /** @var non-empty-list<string> each with complete messages and padding, from {@see MessageReader::rowMessages()} */
    public array $chunks;

    /** @var non-empty-list<int> number of rows in each chunk */
    private array $counts;

    /** Bytes of the messages, with padding. */
    public int $size;

    /**
     * @param bool $binary whether values have the formats of {@see Columns::$formats}; otherwise all values are text
     * @param int<1, max> $count number of rows in `$messages`; {@see add()} increases the property
     */
    public function __construct(
        private readonly bool $binary,
        #[\SensitiveParameter]
        string $messages,
        public int $count,
    ) {
        $this->chunks = [$messages];
        $this->counts = [$count];
        $this->size = \strlen($messages);
    }

    /** @param int<1, max> $count number of rows in `$messages`, which ends with padding */
    public function add(#[\SensitiveParameter] string $messages, int $count): void
    {
        $this->chunks[] = $messages;
        $this->counts[] = $count;
        $this->count += $count;
        $this->size += \strlen($messages);
    }

    /**
     * Decodes the first row, and returns one value for each key. Further values of the row are ignored.
     *
     * @template K of array-key
     *
     * @param list<K> $keys keys of the values
     *
     * @return array<K, mixed>
     */
    public function first(Columns $columns, array $keys): array
    {
        if ($this->size > SizeLimits::UNCHECKED_BYTES) {
            $this->checkMemory($this->chunks[0]);
        }

        return $this->read($this->chunks[0], $columns, $keys, 1)[0];
    }

    /**
     * Decodes all rows. Each call decodes them again.
     *
     * @template K of array-key
     *
     * @param list<K> $keys keys of the values, one for each column
     *
     * @return iterable<list<array<K, mixed>>> batches of rows
     */
    public function batches(Columns $columns, array $keys): iterable
    {
        foreach ($this->chunks as $index => $messages) {
            if ($this->size > SizeLimits::UNCHECKED_BYTES) {
                $this->checkMemory($messages);
            }
            $rows = $this->read($messages, $columns, $keys, \PHP_INT_MAX);
            if (\count($rows) !== $this->counts[$index]) {
                throw ProtocolException::malformed('the length of a row differs from that of its values');
            }
            yield $rows;
        }
    }

    /** @return array<string, int> number of rows, no values */
    public function __debugInfo(): array
    {
        return ['count' => $this->count];
    }

    /** @throws ResultTooLargeException when too little memory is left to decode a chunk of a large result */
    private function checkMemory(#[\SensitiveParameter] string $messages): void
    {
        if (!(new FreeMemory())->allowsPart(\strlen($messages), $this->size)) {
            throw ResultTooLargeException::memory('the values of a result');
        }
    }

    /**
     * Decodes up to `$maxRows` rows. Code for frequent types is inlined, because a call for each value takes too long.
     *
     * @template K of array-key
     *
     * @param list<K> $keys
     *
     * @return non-empty-list<array<K, mixed>>
     *
     * @throws ProtocolException
     */
    private function read(#[\SensitiveParameter] string $messages, Columns $columns, array $keys, int $maxRows): array
    {
        $kinds = $this->binary ? $columns->binaryKinds : $columns->kinds;
        $end = \strlen($messages) - MessageReader::PADDING;
        $rows = [];
        $at = 0;
        // Comparing with a variable takes half as long as comparing with a constant of another class.
        [$int4, $int8, $float8, $text] = [Columns::INT4, Columns::INT8, Columns::FLOAT8, Types::TEXT];
        [$high, $low] = str_split(pack('n', \count($kinds)));
        do {
            if ($messages[$at + 6] !== $low || $messages[$at + 5] !== $high) {
                throw ProtocolException::malformed('the number of values in a row differs from the number of columns');
            }
            $at += 7; // type, length, number of values
            $row = [];
            foreach ($keys as $index => $key) {
                if ($at >= $end) {
                    throw ProtocolException::malformed('a row has fewer values than columns');
                }
                // Only the length -1, which means NULL, begins with this byte.
                if ($messages[$at] === "\xFF") {
                    $row[$key] = null;
                    $at += 4;
                    continue;
                }
                $kind = $kinds[$index];
                if ($kind === $text) {
                    /** @var array{1: int} $read */
                    $read = unpack('N', $messages, $at);
                    $row[$key] = substr($messages, $at + 4, $read[1]);
                    $at += 4 + $read[1];
                } elseif ($kind === $int4) {
                    /** @var array{1: int} $read */
                    $read = unpack('N', $messages, $at + 4);
                    $row[$key] = $read[1] < 0x8000_0000 ? $read[1] : $read[1] - 0x1_0000_0000;
                    $at += 8;
                } elseif ($kind === $float8) {
                    /** @var array{1: float} $read */
                    $read = unpack('E', $messages, $at + 4);
                    $row[$key] = $read[1];
                    $at += 12;
                } elseif ($kind === $int8) {
                    /** @var array{1: int} $read */
                    $read = unpack('J', $messages, $at + 4);
                    $row[$key] = $read[1];
                    $at += 12;
                } else {
                    /** @var array{1: int} $read */
                    $read = unpack('N', $messages, $at);
                    $bytes = substr($messages, $at + 4, $read[1]);
                    $at += 4 + $read[1];
                    $row[$key] = match ($kind) {
                        Columns::BYTES => $bytes,
                        Types::INT => (string) (int) $bytes === $bytes
                            ? (int) $bytes
                            : throw ProtocolException::unreadableValue('integer'),
                        default => $columns->types->decode($columns->oids[$index], $bytes),
                    };
                }
            }
            if ($at < $end ? $maxRows > 1 && $messages[$at] !== 'D' : $at > $end) {
                throw ProtocolException::malformed('the length of a row differs from that of its values');
            }
            $rows[] = $row;
        } while ($at < $end && --$maxRows > 0);

        return $rows;
    }
}
