<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\Output\OutputFailedException;
use Spindle\Cli\Internal\Run\TemporaryFile;

/** Keeps records in an unnamed temporary file, which disappears with the process. */
final class RecordSpool
{
    private const HEADER_BYTES = 12;

    /** @var resource|null */
    private mixed $file = null;

    /** @throws OutputFailedException */
    public function add(int $number, string $record): void
    {
        $this->file ??= TemporaryFile::open();
        $bytes = pack('JN', $number, \strlen($record)) . $record;
        error_clear_last();
        if (@fwrite($this->file, $bytes) !== \strlen($bytes)) {
            throw OutputFailedException::lastError('a temporary file');
        }
    }

    /** @return \Generator<int, string> records by number, in the order of {@see add()} */
    public function records(): \Generator
    {
        if ($this->file === null) {
            return;
        }
        rewind($this->file);
        while (\strlen($head = (string) stream_get_contents($this->file, self::HEADER_BYTES)) === self::HEADER_BYTES) {
            /** @var array{number: int, length: int} $entry */
            $entry = unpack('Jnumber/Nlength', $head);
            yield $entry['number'] => $entry['length'] === 0
                ? ''
                : (string) stream_get_contents($this->file, $entry['length']);
        }
        fclose($this->file);
        $this->file = null;
    }
}
