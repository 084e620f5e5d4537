<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** Thrown when a queue has reached its limit, or its engine is out of memory. The new job was not added. */
final class QueueFullException extends \RuntimeException implements SpindleException
{
    public static function of(string $queue, int $limit): self
    {
        return new self(
            "The queue {$queue} has {$limit} jobs, which is as many as it may have: start more agents, delete what is among its dead letters, or submit less",
        );
    }

    public static function engine(string $queue, string $why, ?\Throwable $previous = null): self
    {
        return new self("The queue {$queue} takes in nothing more: {$why}", 0, $previous);
    }
}
