<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

use function Amp\delay;

/** A stream whose rewind() suspends the fiber, and whose rewind() or read() then fails. */
final class SlowRewind implements StreamInterface
{
    use ReadOnlyStream;

    public function __construct(private readonly bool $failsToRewind) {}

    public function isSeekable(): bool
    {
        return true;
    }

    public function rewind(): void
    {
        delay(0.01);
        $this->failsToRewind ? throw new \RuntimeException('Nothing can be rewound') : null;
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
