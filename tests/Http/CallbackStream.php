<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/** Behaves as the class of this name in laminas-diactoros: only getContents() returns bytes, and only once. */
final class CallbackStream implements StreamInterface
{
    use ReadOnlyStream;

    /** @param (\Closure(): string)|null $callback */
    public function __construct(private ?\Closure $callback) {}

    public function isReadable(): bool
    {
        return false;
    }

    public function read(int $length): string
    {
        throw new \RuntimeException('Callback streams cannot read');
    }

    public function getContents(): string
    {
        [$callback, $this->callback] = [$this->callback, null];

        return $callback === null ? '' : $callback();
    }

    public function eof(): bool
    {
        return $this->callback === null;
    }

    public function tell(): int
    {
        throw new \RuntimeException('Callback streams cannot tell position');
    }

    public function close(): void
    {
        $this->callback = null;
    }
}
