<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;
use Spindle\Internal\Warnings;

/** The content of an uploaded file. The stream can be read several times until the request ends. */
final class UploadStream implements StreamInterface
{
    use ReadOnlyStream;

    private bool $released = false;

    /** @param resource|null $file seekable; null after close() or detach() */
    public function __construct(private mixed $file, private readonly int $size) {}

    /** Closes the file at the end of the request. Each later read throws an exception. */
    public function release(): void
    {
        $this->released = $this->file !== null;
        $this->close();
    }

    public function __toString(): string
    {
        $this->rewind();

        return $this->getContents();
    }

    public function getSize(): int
    {
        return $this->size;
    }

    /** @throws UploadException when the stream was closed, or the request has ended */
    public function read(int $length): string
    {
        $file = $this->fileOrThrow();

        return $length < 1 ? '' : (string) Warnings::read($file, $length);
    }

    public function eof(): bool
    {
        return $this->file === null ? !$this->released : feof($this->file);
    }

    public function tell(): int
    {
        return (int) ftell($this->fileOrThrow());
    }

    public function isSeekable(): bool
    {
        return $this->file !== null;
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        if (fseek($this->fileOrThrow(), $offset, $whence) !== 0) {
            throw new \RuntimeException("Offset {$offset} is outside of the uploaded file");
        }
    }

    public function isReadable(): bool
    {
        return $this->file !== null;
    }

    public function close(): void
    {
        $file = $this->detach();
        if ($file !== null) {
            fclose($file);
        }
    }

    /** @return resource|null */
    public function detach()
    {
        [$file, $this->file] = [$this->file, null];

        return $file;
    }

    public function getMetadata(?string $key = null): mixed
    {
        $metadata = $this->file === null ? [] : stream_get_meta_data($this->file);

        return $key === null ? $metadata : $metadata[$key] ?? null;
    }

    /** @return resource */
    private function fileOrThrow(): mixed
    {
        return $this->file ?? throw ($this->released ? UploadException::requestEnded() : UploadException::closed());
    }
}
