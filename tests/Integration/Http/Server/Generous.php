<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/** A stream that returns all its bytes at once, even if fewer are requested. */
final class Generous implements StreamInterface
{
    use ReadOnlyStream;

    private bool $ended = false;

    public function __construct(private readonly string $bytes) {}

    public function read(int $length): string
    {
        $this->ended = true;

        return $this->bytes;
    }

    public function eof(): bool
    {
        return $this->ended;
    }

    public function tell(): int
    {
        return $this->ended ? \strlen($this->bytes) : 0;
    }

    public function close(): void {}
}
