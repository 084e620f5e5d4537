<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/**
 * The engine (Redis or Valkey) does not know a job: the job was never submitted or was removed from the queue, its
 * outcome expired, or the engine lost its data.
 *
 * Also thrown when items of a generator task are gone, because another reader took them or they have expired. Also
 * thrown when no agent reports the end of a cancelled command in time.
 */
final class JobLostException extends \RuntimeException implements SpindleException
{
    public static function unknown(string $id, string $queue): self
    {
        return new self(
            "The queue {$queue} does not have the job "
                . Job::givenId($id)
                . ' or its outcome: the job was never submitted, was removed, its outcome has expired, or the engine '
                . 'has lost its data. '
                . "If the job has failed, spindle queue show {$queue} " . Job::givenId($id) . ' shows its dead letter.',
        );
    }

    /**
     * @param int $firstMissing index of the first missing item; the first item of a task has index 0
     * @param int $next         index of the first item after the missing items; the number of all items if none follows
     */
    public static function items(string $id, string $queue, int $firstMissing, int $next): self
    {
        return new self(
            "The items {$firstMissing} to "
                . ($next - 1)
                . ' of the job '
                . Job::givenId($id)
                . " of the queue {$queue} are missing: another reader has taken them, or they have expired",
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
