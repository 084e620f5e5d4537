<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** A {@see ReadOnlyStream} that counts the bytes that were read. */
trait PositionedStream
{
    use ReadOnlyStream;

    private int $position = 0;

    public function tell(): int
    {
        return $this->position;
    }
}
