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
            "The queue {$queue} does not have the job "
                . Job::givenId($id)
                . ' or its outcome: the job was never submitted, or its outcome was dropped after the retention',
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
                . " of the queue {$queue} are gone: another reader has taken them, or they have expired",
        );
    }

    public static function unanswered(string $id, string $queue, float $seconds): self
    {
        return new self(
            'The job '
                . Job::givenId($id)
                . " of the queue {$queue} was cancelled, but no agent has reported its end within {$seconds} s. "
                . 'It may still run.',
        );
    }
}
