<?php

declare(strict_types=1);

namespace Spindle\Internal;

interface FrameHandler
{
    /** Receives a frame. Its payload is `$length` bytes of `$bytes`, from offset `$at`. */
    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void;
}
