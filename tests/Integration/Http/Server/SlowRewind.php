<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

use function Amp\delay;

/** A stream whose rewind() suspends the fiber, and whose read() fails. */
final class SlowRewind implements StreamInterface
{
    use ReadOnlyStream;

    public function isSeekable(): bool
    {
        return true;
    }

    public function rewind(): void
    {
        delay(0.01);
    }

    public function read(int $length): string
    {
        throw new \RuntimeException('Nothing can be read');
    }

    public function eof(): bool
    {
        return false;
    }

    public function tell(): int
    {
        return 0;
    }

    public function close(): void {}
}
