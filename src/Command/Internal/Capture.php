<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\StreamException;
use Spindle\Internal\FreeMemory;

/** Holds bytes, such as a command's output: in memory, or in an unlinked file when append() exceeds a limit. */
final class Capture
{
    private const PIECE_BYTES = 1 << 18;

    private string $bytes = '';

    /**
     * @var resource|null file with the whole output, and perhaps with other outputs; null while the output is in memory
     */
    private mixed $file = null;

    /** The shared file that the output was moved to, if any, and the offset of the output in that file. */
    private ?SharedFile $shared = null;
    private int $start = 0;

    private int $memoryBytes = 0;

    /** @var int<0, max> */
    public int $length = 0;

    public function __construct(private CaptureStore $store) {}

    public function __destruct()
    {
        $ownsFile = $this->file !== null && $this->shared === null;
        if ($this->memoryBytes !== 0 || $ownsFile) {
            $this->store->release($this->memoryBytes, $ownsFile);
        }
    }

    /** @return array{string} the output, because a file handle and the store can't be serialized */
    public function __serialize(): array
    {
        return [$this->toString()];
    }

    /** @param array{string} $data */
    public function __unserialize(array $data): void
    {
        $this->store = new CaptureStore(null);
        $this->bytes = $data[0];
        $this->length = \strlen($data[0]);
    }

    /** @throws StreamException when the output can't be written to a file; earlier pieces are kept */
    public function append(string $bytes): void
    {
        $size = \strlen($bytes);
        if ($this->file === null && !$this->store->reserveMemory($size, \strlen($this->bytes) + $size)) {
            $this->spill();
        }
        if ($this->file === null) {
            $this->bytes .= $bytes;
            $this->memoryBytes += $size;
        } else {
            $this->store->write($this->file, $bytes);
        }
        $this->length += $size;
    }

    /**
     * Removes what a failed {@see append()} has stored after the first `$length` bytes. The output is not shared.
     *
     * @param int<0, max> $length
     */
    public function truncate(int $length): void
    {
        if ($this->file !== null) {
            ftruncate($this->file, $length);
            fseek($this->file, 0, \SEEK_END);
        }
    }

    public function hasOwnFile(): bool
    {
        return $this->file !== null && $this->shared === null;
    }

    /**
     * Copies the output from its own file to the end of a shared file, and closes its own file. Nothing may be appended
     * after this call.
     *
     * @throws StreamException when the shared file can't be written; the output stays in its own file
     */
    public function moveTo(SharedFile $shared): void
    {
        if ($this->file === null || $this->shared !== null) {
            return;
        }
        fseek($shared->stream, 0, \SEEK_END);
        $start = (int) ftell($shared->stream);
        $at = 0;
        while (($bytes = (string) stream_get_contents($this->file, self::PIECE_BYTES, $at)) !== '') {
            $this->store->write($shared->stream, $bytes);
            $at += \strlen($bytes);
        }
        $this->shared = $shared;
        $this->file = $shared->stream;
        $this->start = $start;
        $this->length = $at;
        $this->store->release(0, true);
    }

    /** @throws StreamException when the output in a file is too large for the free memory */
    public function toString(): string
    {
        if ($this->file === null) {
            return $this->bytes;
        }
        if (!(new FreeMemory())->allowsPart($this->length, $this->length)) {
            throw StreamException::tooLarge($this->length);
        }

        return $this->shared === null
            ? (string) stream_get_contents($this->file, null, 0)
            : (string) stream_get_contents($this->file, $this->length, $this->start);
    }

    public function tail(int $maxBytes): string
    {
        $start = max(0, $this->length - $maxBytes);
        if ($this->file === null) {
            return substr($this->bytes, $start);
        }
        $tail = (string) stream_get_contents($this->file, $maxBytes, $this->start + $start);
        fseek($this->file, 0, \SEEK_END); // the read has moved the position, and append() writes at the position

        return $tail;
    }

    /** @return resource stream at the first byte of the output */
    public function toStream(): mixed
    {
        if ($this->file !== null) {
            return $this->shared === null
                ? CaptureStream::over($this->file)
                : CaptureStream::over($this->file, $this->start, $this->length);
        }
        $stream = fopen('php://memory', 'w+');
        \assert($stream !== false);
        fwrite($stream, $this->bytes);
        rewind($stream);

        return $stream;
    }

    private function spill(): void
    {
        $file = $this->store->open();
        try {
            $this->store->write($file, $this->bytes);
        } catch (StreamException $failed) {
            $this->store->release(0, true);

            throw $failed;
        }
        $this->file = $file;
        $this->store->release($this->memoryBytes, false);
        $this->bytes = '';
        $this->memoryBytes = 0;
    }
}
