<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** A queue has as many jobs as it may have, or its engine has no memory for more: this one was not taken in. */
final class QueueFullException extends \RuntimeException implements SpindleException
{
    public static function of(string $queue, int $limit): self
    {
        return new self("The queue {$queue} has {$limit} jobs, which is as many as it may have: start more agents, delete what is among its dead letters, or submit less");
    }

    public static function engine(string $queue, string $why, ?\Throwable $previous = null): self
    {
        return new self("The queue {$queue} takes in nothing more: {$why}", 0, $previous);
    }
}
