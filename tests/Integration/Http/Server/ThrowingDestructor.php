<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/** An empty body whose destructor throws, after the response was handled. */
final class ThrowingDestructor implements StreamInterface
{
    use ReadOnlyStream;

    public const MESSAGE = 'from a destructor';

    public function __destruct()
    {
        throw new \RuntimeException(self::MESSAGE);
    }

    public function getSize(): int
    {
        return 0;
    }

    public function read(int $length): string
    {
        return '';
    }

    public function eof(): bool
    {
        return true;
    }

    public function tell(): int
    {
        return 0;
    }

    public function close(): void {}
}
