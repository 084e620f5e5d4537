<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Internal\Warnings;

/** Reserves descriptors that connections can't use. Releases them for handlers when no other descriptor is free. */
final class SpareDescriptors
{
    private const COUNT = 8;

    /** @var list<resource> */
    private array $streams = [];

    /** @return bool whether all spare descriptors are reserved; if false, none is reserved */
    public function reserve(): bool
    {
        while (\count($this->streams) < self::COUNT) {
            $stream = Warnings::suppressed(static fn(): mixed => fopen('/dev/null', 're'));
            if ($stream === false) {
                $this->release();

                return false;
            }
            $this->streams[] = $stream;
        }

        return true;
    }

    public function release(): void
    {
        $this->streams = [];
    }
}
