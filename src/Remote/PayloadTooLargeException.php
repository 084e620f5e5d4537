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
            "The task with its argument, or the command with its input, has {$size} bytes. The limit is {$limit} "
                . '(RemoteOptions::$maxPayload). Store the data where the agents can read it, and send its name.',
        );
    }
}
