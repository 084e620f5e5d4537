<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** A queue has reached its limit of jobs, or the engine (Redis or Valkey) is out of memory. The job was not added. */
final class QueueFullException extends \RuntimeException implements SpindleException
{
    public static function of(string $queue, int $limit): self
    {
        return new self(
            "The queue {$queue} was full: it had {$limit} jobs without an outcome, "
                . 'its limit (RemoteOptions::$maxJobs). The new job was not added. '
                . 'Start more agents, submit fewer jobs, or raise the limit. '
                . "'spindle queue purge {$queue} --yes' removes the waiting jobs. Dead letters do not count.",
        );
    }

    public static function engine(string $queue, string $why, ?\Throwable $previous = null): self
    {
        return new self("The engine of the queue {$queue} could not store the new job: {$why}", 0, $previous);
    }
}
