<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Async\OneShot;
use Spindle\Internal\CannotWaitException;
use Spindle\Remote\Broker;
use Spindle\Remote\Job;
use Spindle\Remote\JobConflictException;
use Spindle\Remote\SubmitResult;

/** Submits jobs to a queue. Jobs that arrive while a request is pending go together into the next request. */
final class JobOutbox
{
    /** A request gets no further submission when it has this number of jobs or bytes. */
    private const MAX_BATCH_JOBS = 1000;
    private const MAX_BATCH_BYTES = 4 << 20;

    /** @var list<array{int, list<Job>, bool, OneShot<int>}> arguments of {@see send()}, and its result */
    private array $submissions = [];

    /** @var array<string, true> ids of jobs whose submission is pending, as keys */
    private array $pendingIds = [];

    private bool $isSending = false;

    /** @param float $patience seconds for which a submission is retried while the engine is not available */
    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $mailbox,
        private readonly float $patience,
    ) {}

    public function isPending(string $id): bool
    {
        return isset($this->pendingIds[$id]);
    }

    /**
     * Sends jobs. Returns how many of them the engine has accepted, from the start of the list.
     *
     * @param list<Job> $jobs     at most as many as {@see Broker::submit()} accepts
     * @param bool      $mayExist as in {@see Broker::submit()}
     *
     * @throws CannotWaitException
     * @throws JobConflictException
     * @throws \Spindle\Remote\BrokerException
     */
    public function send(int $maxJobs, array $jobs, bool $mayExist): int
    {
        /** @var OneShot<int> $accepted */
        $accepted = new OneShot();
        $this->submissions[] = [$maxJobs, $jobs, $mayExist, $accepted];
        foreach ($jobs as $job) {
            $this->pendingIds[$job->id] = true;
        }
        if (!$this->isSending) {
            $this->isSending = true;
            EventLoop::queue($this->sendAll(...));
        }
        try {
            return $accepted->await();
        } catch (CannotWaitException $blocked) {
            array_pop($this->submissions); // the loop has not run since, so the last one is that of this call

            throw $blocked;
        } finally {
            foreach ($jobs as $job) {
                unset($this->pendingIds[$job->id]);
            }
        }
    }

    private function sendAll(): void
    {
        while ($this->submissions !== []) {
            [$maxJobs, , $mayExist] = $this->submissions[0];
            $jobs = $batch = [];
            $size = 0;
            foreach ($this->submissions as $i => [$otherMaxJobs, $more, $otherMayExist]) {
                $isFull = \count($jobs) >= self::MAX_BATCH_JOBS || $size >= self::MAX_BATCH_BYTES;
                if ($i > 0 && ($isFull || $otherMaxJobs !== $maxJobs)) {
                    break;
                }
                $mayExist = $mayExist || $otherMayExist;
                $batch[] = $this->submissions[$i];
                foreach ($more as $job) {
                    $jobs[] = $job;
                    $size += \strlen($job->frame);
                }
            }
            $this->submissions = \array_slice($this->submissions, \count($batch));
            try {
                $result = $this->submit($jobs, $maxJobs, $mayExist);
            } catch (\Throwable $failure) {
                foreach ($batch as [, , , $accepted]) {
                    $accepted->fail($failure);
                }

                continue;
            }
            $conflicts = array_flip($result->conflicts);
            $offset = 0;
            foreach ($batch as [, $ownJobs, , $accepted]) {
                // Only a dispatched job can be in conflict, and its submission consists of that job.
                isset($conflicts[$offset])
                    ? $accepted->fail(JobConflictException::of($this->queue, Job::givenId($ownJobs[0]->id)))
                    : $accepted->complete(max(0, min(\count($ownJobs), $result->accepted - $offset)));
                $offset += \count($ownJobs);
            }
        }
        $this->isSending = false;
    }

    /** @param list<Job> $jobs */
    private function submit(array $jobs, int $maxJobs, bool $mayExist): SubmitResult
    {
        return ReconnectBackoff::retry(
            $this->patience,
            fn(bool $isRepeated): SubmitResult
                => $this->broker->submit($this->queue, $jobs, $maxJobs, $this->mailbox, $mayExist || $isRepeated),
        );
    }
}
