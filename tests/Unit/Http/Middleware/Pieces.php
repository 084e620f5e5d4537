<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/** A body that returns one piece per read, even an empty one. */
final class Pieces implements StreamInterface
{
    use ReadOnlyStream;

    public bool $closed = false;

    /** Size in bytes; null when unknown. */
    public ?int $size = null;

    /** @var (\Closure(): mixed)|null what happens while it is read */
    public ?\Closure $meanwhile = null;

    /** @param list<string> $pieces */
    public function __construct(private array $pieces) {}

    public function read(int $length): string
    {
        if ($this->meanwhile !== null) {
            ($this->meanwhile)();
        }

        return array_shift($this->pieces) ?? '';
    }

    public function eof(): bool
    {
        return $this->pieces === [];
    }

    public function getSize(): ?int
    {
        return $this->size;
    }

    public function tell(): int
    {
        return 0;
    }

    public function close(): void
    {
        $this->closed = true;
    }
}
