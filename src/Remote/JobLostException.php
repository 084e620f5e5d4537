<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/**
 * Thrown when the broker does not know a job: it never existed, or its outcome was dropped after the retention. Also
 * thrown when items of a generator are gone, because only one reader can take them, and when a cancelled command does
 * not report its end.
 */
final class JobLostException extends \RuntimeException implements SpindleException
{
    public static function unknown(string $id, string $queue): self
    {
        return new self(
            "The queue {$queue} knows nothing of the job "
                . Job::givenId($id)
                . ': its outcome is gone, or there never was one',
        );
    }

    /** @param int $next the first item that exists, or the number of items */
    public static function items(string $id, string $queue, int $missing, int $next): self
    {
        return new self(
            "The items {$missing} to "
                . ($next - 1)
                . ' of the job '
                . Job::givenId($id)
                . " of the queue {$queue} are gone: they were not kept, or somebody else has taken them",
        );
    }

    public static function unanswered(string $id, string $queue, float $seconds): self
    {
        return new self(
            'The job '
                . Job::givenId($id)
                . " of the queue {$queue} was withdrawn, and after {$seconds} s nobody has said that it runs no more",
        );
    }
}
