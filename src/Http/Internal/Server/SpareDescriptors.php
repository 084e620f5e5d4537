<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/** Keeps some descriptors from connections. Releases them when no other is free, so that handlers can open files. */
final class SpareDescriptors
{
    private const COUNT = 8;

    /** @var list<resource> */
    private array $streams = [];

    /** @return bool whether all descriptors are open; otherwise none is */
    public function reserve(): bool
    {
        while (\count($this->streams) < self::COUNT) {
            $stream = @fopen('/dev/null', 're');
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
