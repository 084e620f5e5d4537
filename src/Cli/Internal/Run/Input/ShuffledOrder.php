<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\TemporaryFile;

/** Keeps positions of records in a temporary file without a name, and yields them in a random order. */
final class ShuffledOrder
{
    private const ENTRY_BYTES = 8;

    private int $count = 0;

    /** @var resource */
    private readonly mixed $file;

    /** @throws OutputFailedException */
    public function __construct()
    {
        $this->file = TemporaryFile::open();
    }

    /** @throws OutputFailedException */
    public function add(int $position): void
    {
        $this->write($position);
        ++$this->count;
    }

    /**
     * Yields the positions by the algorithm of Fisher and Yates. Can be called once, after the last {@see add()}.
     *
     * @return \Generator<int, int>
     *
     * @throws OutputFailedException
     */
    public function positions(): \Generator
    {
        for ($last = $this->count - 1; $last >= 0; --$last) {
            $chosen = mt_rand(0, $last);
            $position = $this->read($chosen);
            if ($chosen !== $last) {
                $moved = $this->read($last);
                fseek($this->file, $chosen * self::ENTRY_BYTES);
                $this->write($moved);
            }
            yield $position;
        }
    }

    private function read(int $index): int
    {
        fseek($this->file, $index * self::ENTRY_BYTES);
        /** @var array{1: int} $entry */
        $entry = unpack('J', (string) stream_get_contents($this->file, self::ENTRY_BYTES));

        return $entry[1];
    }

    private function write(int $position): void
    {
        error_clear_last();
        if (@fwrite($this->file, pack('J', $position)) !== self::ENTRY_BYTES) {
            throw OutputFailedException::lastError('a temporary file');
        }
    }
}
