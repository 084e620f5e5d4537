<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\PositionedStream;

/** A string as the body of a request. Reports each read; the first read means that the request has a connection. */
final class ReportedText implements StreamInterface
{
    use PositionedStream;

    /** Maximum bytes of one read, so that a long upload reports its progress often. */
    private const MAX_READ_BYTES = 65_536;

    /** @param \Closure(int): void $onRead gets the number of bytes of each read */
    public function __construct(
        #[\SensitiveParameter]
        private readonly string $text,
        private readonly \Closure $onRead,
    ) {}

    /** Reads a short string, so that the caller can send it together with the head. Returns $this for a long string. */
    public function readIfShort(): self|string
    {
        return \strlen($this->text) > self::MAX_READ_BYTES ? $this : $this->read(self::MAX_READ_BYTES);
    }

    public function read(int $length): string
    {
        $bytes = substr($this->text, $this->position, min($length, self::MAX_READ_BYTES));
        $this->position += \strlen($bytes);
        ($this->onRead)(\strlen($bytes));

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->position === \strlen($this->text);
    }

    public function getSize(): int
    {
        return \strlen($this->text);
    }

    public function isSeekable(): bool
    {
        return true;
    }

    public function rewind(): void
    {
        $this->position = 0;
    }

    public function close(): void {}
}
