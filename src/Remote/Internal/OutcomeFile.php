<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\FileSizeLimit;
use Spindle\Internal\UnlinkedFile;

/** An unlinked file for the outcomes of a map() call that exceed the memory limit of an {@see OutcomeBuffer}. */
final class OutcomeFile
{
    /** @var resource|null */
    private mixed $file = null;

    private int $end = 0;

    private int $unreadCount = 0;

    /** @return array{int, int}|null offset and length; null if writing failed, for example because the disk is full */
    public function write(string $bytes): ?array
    {
        $file = $this->file ?? UnlinkedFile::open(sys_get_temp_dir());
        $isWritten = $file !== false
            && fseek($file, $this->end) === 0
            && FileSizeLimit::write($file, $bytes) === \strlen($bytes);
        if (!$isWritten) {
            return null;
        }
        $this->file = $file;
        $range = [$this->end, \strlen($bytes)];
        $this->end += \strlen($bytes);
        ++$this->unreadCount;

        return $range;
    }

    /** @param array{int, int} $range as from {@see write()}; each range can be read only once */
    public function read(array $range): string
    {
        $bytes = $this->file === null ? '' : (string) stream_get_contents($this->file, $range[1], $range[0]);
        if (--$this->unreadCount === 0 && $this->file !== null) {
            ftruncate($this->file, 0); // all outcomes in the file were read, so their disk space can be freed
            $this->end = 0;
        }

        return $bytes;
    }
}
