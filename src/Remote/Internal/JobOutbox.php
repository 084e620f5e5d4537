<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Fibers;
use Spindle\Remote\Broker;
use Spindle\Remote\Job;
use Spindle\Remote\JobConflictException;
use Spindle\Remote\SubmitResult;

/** Jobs that are being submitted to a queue. Jobs that arrive while a request is pending go with the next one. */
final class JobOutbox
{
    private const MAX_BATCH_JOBS = 1000;
    private const MAX_BATCH_BYTES = 4 << 20;

    /** @var list<array{int, list<Job>, bool, Suspension<int>}> */
    private array $submissions = [];

    /** @var array<string, true> ids of jobs whose submission is not answered */
    private array $unanswered = [];

    private bool $sending = false;

    /** @param float $patience seconds for which submissions are retried while the engine is not available */
    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $mailbox,
        private readonly float $patience,
    ) {}

    public function isPending(string $id): bool
    {
        return isset($this->unanswered[$id]);
    }

    /**
     * @param list<Job> $jobs at most as many as {@see Broker::submit()} accepts
     *
     * @return int number of accepted jobs
     *
     * @throws CannotWaitException
     * @throws JobConflictException
     */
    public function send(int $backlog, array $jobs, bool $maybeKnown): int
    {
        $suspension = EventLoop::getSuspension();
        $this->submissions[] = [$backlog, $jobs, $maybeKnown, $suspension];
        foreach ($jobs as $job) {
            $this->unanswered[$job->id] = true;
        }
        if (!$this->sending) {
            $this->sending = true;
            EventLoop::queue($this->sendAll(...));
        }
        try {
            /** @var int */
            return Fibers::suspend($suspension);
        } catch (CannotWaitException $blocked) {
            array_pop($this->submissions); // the loop has not run since

            throw $blocked;
        } finally {
            foreach ($jobs as $job) {
                unset($this->unanswered[$job->id]);
            }
        }
    }

    private function sendAll(): void
    {
        while ($this->submissions !== []) {
            [$backlog, , $maybeKnown] = $this->submissions[0];
            $jobs = $batch = [];
            $size = 0;
            foreach ($this->submissions as $i => [$otherBacklog, $more, $otherMaybeKnown]) {
                $isFull = \count($jobs) >= self::MAX_BATCH_JOBS || $size >= self::MAX_BATCH_BYTES;
                if ($i > 0 && ($isFull || $otherBacklog !== $backlog)) {
                    break;
                }
                $maybeKnown = $maybeKnown || $otherMaybeKnown;
                $batch[] = $this->submissions[$i];
                foreach ($more as $job) {
                    $jobs[] = $job;
                    $size += \strlen($job->frame);
                }
            }
            $this->submissions = \array_slice($this->submissions, \count($batch));
            try {
                $result = $this->submit($jobs, $backlog, $maybeKnown);
            } catch (\Throwable $failure) {
                foreach ($batch as [, , , $suspension]) {
                    $suspension->throw($failure);
                }

                continue;
            }
            $conflicts = array_flip($result->conflicts);
            $first = 0;
            foreach ($batch as [, $own, , $suspension]) {
                // only a dispatched job, which is alone in its submission, can have the id of another job
                isset($conflicts[$first])
                    ? $suspension->throw(JobConflictException::of($this->queue, Job::givenId($own[0]->id)))
                    : $suspension->resume(max(0, min(\count($own), $result->accepted - $first)));
                $first += \count($own);
            }
        }
        $this->sending = false;
    }

    /** @param list<Job> $jobs */
    private function submit(array $jobs, int $backlog, bool $maybeKnown): SubmitResult
    {
        return ReconnectBackoff::retry(
            $this->patience,
            fn(bool $again): SubmitResult
                => $this->broker->submit($this->queue, $jobs, $backlog, $this->mailbox, $maybeKnown || $again),
        );
    }
}
