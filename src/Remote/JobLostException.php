<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/**
 * The broker knows nothing of a job: its outcome was kept for the time that was asked for and is gone, or there never was such a job. Or a
 * command is to end, and nobody says that it has.
 */
final class JobLostException extends \RuntimeException implements SpindleException
{
    public static function unknown(string $id, string $queue): self
    {
        return new self("The queue {$queue} knows nothing of the job {$id}: its outcome is gone, or there never was one");
    }

    public static function unanswered(string $id, string $queue, float $seconds): self
    {
        return new self("The job {$id} of the queue {$queue} was withdrawn, and after {$seconds} s nobody has said that it runs no more");
    }
}
