<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Psr\Log\LoggerInterface;
use Spindle\Internal\Excerpt;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Job;

/** Logs failed attempts of an agent's jobs, at most MAX_PER_SECOND in a second. Further ones are logged as a number. */
final class FailedJobLog
{
    private const MAX_PER_SECOND = 10;

    /** Maximum bytes of a reason in the log. The dead letter has a longer part of the reason. */
    private const MAX_REASON_BYTES = 500;

    /** Number of failures in the current second. A second starts with its first failure. */
    private int $count = 0;

    /** Number of dead letters among the failures that were not logged in the current second. */
    private int $unloggedDead = 0;

    public function __construct(private readonly LoggerInterface $logger, private readonly string $queue) {}

    /**
     * @param string     $reason only the first line is logged, because the other lines are the stack trace
     * @param float|null $delay  seconds until the job can be claimed again; null if the job is a dead letter now
     * @param string     $place  file and line in parentheses: the end of the reason, also of a shortened reason
     */
    public function add(string $id, int $attempt, string $reason, ?float $delay, string $place = ''): void
    {
        if ($this->count === 0) {
            WeakTimer::after(1.0, $this, static fn(self $self) => $self->endSecond());
        }
        if (++$this->count > self::MAX_PER_SECOND) {
            $this->unloggedDead += $delay === null ? 1 : 0;

            return;
        }
        $reason = rtrim(Excerpt::of(explode("\n", $reason, 2)[0], self::MAX_REASON_BYTES), '.');
        $this->warn('Attempt {attempt} of the job {job} of the queue {queue} has failed: {reason}. {next}', [
            'attempt' => $attempt,
            'job' => Job::givenId($id),
            'reason' => str_ends_with($reason, $place) ? $reason : $reason . $place,
            'next' => match (true) {
                $delay === null => "The job is a dead letter now; see spindle queue show {$this->queue} "
                    . Job::givenId($id),
                round($delay, 1) > 0 => \sprintf('The job is tried again after %s s', round($delay, 1)),
                default => 'The job is tried again now',
            },
        ]);
    }

    private function endSecond(): void
    {
        [$unlogged, $dead] = [$this->count - self::MAX_PER_SECOND, $this->unloggedDead];
        $this->count = $this->unloggedDead = 0;
        $next = $dead === 0 ? '' : "; {$dead} of the jobs are dead letters now, see spindle queue show {$this->queue}";
        if ($unlogged > 0) {
            $this->warn(
                '{count} more attempts of jobs of the queue {queue} have failed{next}',
                ['count' => $unlogged, 'next' => $next],
            );
        }
    }

    /** @param array<string, string|int> $values */
    private function warn(string $message, array $values): void
    {
        $this->logger->warning($message, ['queue' => $this->queue, ...$values]);
    }
}
