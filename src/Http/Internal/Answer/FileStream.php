<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\PositionedStream;
use Spindle\Internal\Warnings;

/** A part of an open file as a stream of fixed length. If the file is truncated, the stream ends early. */
final class FileStream implements StreamInterface
{
    use PositionedStream;

    /** @var resource|null */
    private $file;

    /** Whether the last read returned no bytes, because the file was truncated. */
    private bool $endedEarly = false;

    /** @param resource $file closed by {@see close()}; must not be read by other code */
    public function __construct($file, private readonly int $start, private readonly int $length)
    {
        $this->file = $file;
        stream_set_read_buffer($file, 0); // so that a large read needs only one system call
        $this->seek(0);
    }

    public function __toString(): string
    {
        $this->rewind();

        return $this->getContents();
    }

    public function getSize(): int
    {
        return $this->length;
    }

    public function isSeekable(): bool
    {
        return true;
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        $offset += match ($whence) {
            \SEEK_CUR => $this->position,
            \SEEK_END => $this->length,
            default => 0,
        };
        if ($this->file === null || $offset < 0 || fseek($this->file, $this->start + $offset) !== 0) {
            throw new \RuntimeException(
                $this->file === null ? 'The file was closed' : "Offset {$offset} is outside of this part of the file",
            );
        }
        $this->position = $offset;
        $this->endedEarly = false;
    }

    public function read(int $length): string
    {
        $length = min($length, $this->length - $this->position);
        if ($this->file === null || $length < 1) {
            return '';
        }
        $bytes = (string) Warnings::read($this->file, $length);
        $this->endedEarly = $bytes === '';
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->file === null || $this->endedEarly || $this->position >= $this->length;
    }

    public function close(): void
    {
        if ($this->file !== null) {
            fclose($this->file);
            $this->file = null;
        }
    }
}
