<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/**
 * Reserved descriptors. When connections use all others, requests still need some, if only for the file of a class that
 * was not loaded yet.
 */
final class Spares
{
    private const COUNT = 8;

    /** @var list<resource> */
    private array $streams = [];

    /** @return bool whether all of them are reserved; otherwise none is */
    public function keep(): bool
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
