<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\UnlinkedFile;

/** Outcomes that do not fit into memory, in an unlinked file. The file is truncated when all of them were read. */
final class OutcomeFile
{
    /** @var resource|null */
    private mixed $file = null;

    private int $end = 0;
    private int $unread = 0;

    /** @return array{int, int}|null offset and length; null when writing fails, as on a full disk */
    public function write(string $bytes): ?array
    {
        $file = $this->file ?? UnlinkedFile::open(sys_get_temp_dir());
        if ($file === false || fseek($file, $this->end) !== 0 || @fwrite($file, $bytes) !== \strlen($bytes)) {
            return null;
        }
        $this->file = $file;
        $range = [$this->end, \strlen($bytes)];
        $this->end += \strlen($bytes);
        ++$this->unread;

        return $range;
    }

    /**
     * Returns what was written. Each place can be read once.
     *
     * @param array{int, int} $range
     */
    public function read(array $range): string
    {
        $bytes = $this->file === null ? '' : (string) stream_get_contents($this->file, $range[1], $range[0]);
        if (--$this->unread === 0 && $this->file !== null) {
            ftruncate($this->file, 0);
            $this->end = 0;
        }

        return $bytes;
    }
}
