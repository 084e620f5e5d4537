<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/** A stream whose read() never returns. */
final class SuspendedStream implements StreamInterface
{
    use ReadOnlyStream;

    public function getSize(): int
    {
        return 1;
    }

    public function isSeekable(): bool
    {
        return true;
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void {}

    public function read(int $length): string
    {
        EventLoop::getSuspension()->suspend();

        return 'a';
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
