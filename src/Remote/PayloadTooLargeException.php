<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** Thrown when a task with its argument, or a command, is too large for a queue. Nothing was sent. */
final class PayloadTooLargeException extends \RuntimeException implements SpindleException
{
    public static function of(int $size, int $limit): self
    {
        return new self(
            "A task with its argument, or a command with its input, has {$size} bytes, and a queue takes {$limit} at most: put the data where the agents can read it, and send its name",
        );
    }
}
