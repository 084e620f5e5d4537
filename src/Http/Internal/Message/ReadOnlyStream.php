<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** Default methods of a PSR-7 stream that is read once, from its beginning to its end. */
trait ReadOnlyStream
{
    use NotSerializable;

    /** Refuses copies, which would share the connection, file or iterator. */
    private function __clone() {}

    public function __toString(): string
    {
        return $this->getContents();
    }

    public function getContents(): string
    {
        $contents = '';
        while (!$this->eof()) {
            $contents .= $this->read(65_536);
        }

        return $contents;
    }

    public function detach()
    {
        $this->close();

        return null;
    }

    public function getSize(): ?int
    {
        return null;
    }

    public function isSeekable(): bool
    {
        return false;
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        throw new \RuntimeException('This body can be read only once, from its beginning to its end');
    }

    public function rewind(): void
    {
        $this->seek(0);
    }

    public function isWritable(): bool
    {
        return false;
    }

    public function write(string $string): int
    {
        throw new \RuntimeException('This body is read-only');
    }

    public function isReadable(): bool
    {
        return true;
    }

    public function getMetadata(?string $key = null): mixed
    {
        return $key === null ? [] : null;
    }
}
