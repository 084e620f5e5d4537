<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\TemporaryFile;

/** Keeps the values of records in a temporary file, from which they can be read any number of times. */
final class RecordSpool
{
    private const HEADER_BYTES = 12;
    private const LENGTH_BYTES = 4;

    /** @var resource|null */
    private mixed $file = null;

    /**
     * Adds a record at the file's position. Reading moves this position, so no record may be added after reading.
     *
     * @param list<string> $values
     *
     * @return int position of the record, for {@see at()}
     *
     * @throws OutputFailedException
     */
    public function add(int $number, array $values): int
    {
        $this->file ??= TemporaryFile::open();
        $bytes = pack('JN', $number, \count($values))
            . pack('N*', ...array_map(\strlen(...), $values))
            . implode('', $values);
        $position = (int) ftell($this->file);
        error_clear_last();
        if (@fwrite($this->file, $bytes) !== \strlen($bytes)) {
            throw OutputFailedException::lastError('a temporary file');
        }

        return $position;
    }

    /**
     * Yields the values of all records in the order in which they were added. Can be called again after that.
     *
     * @return \Generator<int, list<string>> values by the number given to {@see add()}
     */
    public function records(): \Generator
    {
        if ($this->file === null) {
            return;
        }
        rewind($this->file);
        while (\strlen($head = $this->read(self::HEADER_BYTES)) === self::HEADER_BYTES) {
            /** @var array{number: int, count: int} $entry */
            $entry = unpack('Jnumber/Ncount', $head);
            yield $entry['number'] => $this->values($entry['count']);
        }
    }

    /** @return list<string> the values of the record at a position that {@see add()} has returned */
    public function at(int $position): array
    {
        if ($this->file === null) {
            return [];
        }
        fseek($this->file, $position);
        /** @var array{count: int} $entry */
        $entry = unpack('Jnumber/Ncount', $this->read(self::HEADER_BYTES));

        return $this->values($entry['count']);
    }

    /** @return list<string> */
    private function values(int $count): array
    {
        /** @var array<int> $lengths */
        $lengths = unpack('N*', $this->read(self::LENGTH_BYTES * $count));

        return array_values(array_map($this->read(...), $lengths));
    }

    private function read(int $length): string
    {
        return $length === 0 || $this->file === null ? '' : (string) stream_get_contents($this->file, $length);
    }
}
