<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/** A body that prints what is written to it, and whose close() throws, as NonBufferedBody of slim/psr7 does. */
final class UnclosableBody implements StreamInterface
{
    use ReadOnlyStream;

    private int $position = 0;

    /** @param string $bytes bytes to be read */
    public function __construct(private readonly string $bytes = '') {}

    public function isWritable(): bool
    {
        return true;
    }

    public function write(string $string): int
    {
        while (ob_get_level() > 0) {
            ob_end_clean();
        }
        echo $string;
        flush();

        return \strlen($string);
    }

    public function read(int $length): string
    {
        $bytes = substr($this->bytes, $this->position, $length);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->position === \strlen($this->bytes);
    }

    public function tell(): int
    {
        return $this->position;
    }

    public function close(): void
    {
        throw new \RuntimeException('This body is not closable');
    }
}
