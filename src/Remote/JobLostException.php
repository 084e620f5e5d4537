<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/**
 * The broker knows nothing of a job: its outcome was kept for the time that was asked for and is gone, or there never was such a job. Or some
 * of a generator's items are gone, which only one can take. Or a command is to end, and nobody says that it has.
 */
final class JobLostException extends \RuntimeException implements SpindleException
{
    public static function unknown(string $id, string $queue): self
    {
        return new self("The queue {$queue} knows nothing of the job " . Job::givenId($id) . ': its outcome is gone, or there never was one');
    }

    /** @param int $next the first one that there is, or how many there were */
    public static function items(string $id, string $queue, int $missing, int $next): self
    {
        return new self("The items {$missing} to " . ($next - 1) . ' of the job ' . Job::givenId($id) . " of the queue {$queue} are gone: they were not kept, or somebody else has taken them");
    }

    public static function unanswered(string $id, string $queue, float $seconds): self
    {
        return new self('The job ' . Job::givenId($id) . " of the queue {$queue} was withdrawn, and after {$seconds} s nobody has said that it runs no more");
    }
}
