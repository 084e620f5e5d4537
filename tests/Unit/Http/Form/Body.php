<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Form;

use Psr\Http\Message\StreamInterface;

/** A body that arrives in pieces. */
final class Body implements StreamInterface
{
    /** Number of bytes read. */
    public int $read = 0;

    /** @var \Iterator<string> */
    private readonly \Iterator $pieces;

    /** @param iterable<string> $pieces */
    public function __construct(iterable $pieces)
    {
        $this->pieces = (static fn(): \Generator => yield from $pieces)();
    }

    public function read(int $length): string
    {
        $piece = $this->pieces->valid() ? $this->pieces->current() : '';
        $this->pieces->next();
        $this->read += \strlen($piece);

        return $piece;
    }

    public function eof(): bool
    {
        return !$this->pieces->valid();
    }

    public function __toString(): string
    {
        throw new \LogicException('A body is read piece by piece');
    }

    public function getContents(): string
    {
        return (string) $this;
    }

    public function close(): void {}

    public function detach()
    {
        return null;
    }

    public function getSize(): ?int
    {
        return null;
    }

    public function tell(): int
    {
        return $this->read;
    }

    public function isSeekable(): bool
    {
        return false;
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        throw new \RuntimeException('A body comes once');
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
        throw new \RuntimeException('A body is not written');
    }

    public function isReadable(): bool
    {
        return true;
    }

    public function getMetadata(?string $key = null)
    {
        return $key === null ? [] : null;
    }
}
