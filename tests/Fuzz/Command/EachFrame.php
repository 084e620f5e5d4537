<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Command;

use Spindle\Internal\FrameHandler;

/** Calls a function with the type, id and payload of each frame. */
final class EachFrame implements FrameHandler
{
    /** @param \Closure(array{int, int, string}): void $then */
    public function __construct(private readonly \Closure $then) {}

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        ($this->then)([$type, $id, substr($bytes, $at, $length)]);
    }
}
