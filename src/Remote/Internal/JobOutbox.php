<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
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

    /** @var list<array{object, int, list<Job>, bool, OneShot<int>}> arguments of {@see send()}, and its result */
    private array $submissions = [];

    /** @var list<array{object, int, list<Job>, bool, OneShot<int>}> the same of the request that is pending */
    private array $sent = [];

    /** @var array<string, true> ids of jobs whose submission is pending, as keys */
    private array $pendingIds = [];

    private bool $isSending = false;

    /** Fibers that wait until no request is pending. */
    private readonly FiberQueue $flushing;

    /** @param float $patience seconds for which a submission is retried while the engine is not available */
    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $mailbox,
        private readonly float $patience,
    ) {
        $this->flushing = new FiberQueue();
    }

    public function isPending(string $id): bool
    {
        return isset($this->pendingIds[$id]);
    }

    /**
     * Sends jobs. Returns how many of them the engine has accepted, from the start of the list.
     *
     * @param object    $sender   identifies the caller in {@see abandon()}
     * @param list<Job> $jobs     at most as many as {@see Broker::submit()} accepts
     * @param bool      $mayExist as in {@see Broker::submit()}
     *
     * @throws CannotWaitException
     * @throws JobConflictException
     * @throws \Spindle\Remote\BrokerException
     */
    public function send(object $sender, int $maxJobs, array $jobs, bool $mayExist): int
    {
        /** @var OneShot<int> $accepted */
        $accepted = new OneShot();
        $this->submissions[] = [$sender, $maxJobs, $jobs, $mayExist, $accepted];
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

    /**
     * Makes the pending {@see send()} calls of a sender fail. If a request is pending, the engine perhaps accepts jobs
     * of that request. The other jobs are not sent.
     */
    public function abandon(object $sender, \Throwable $reason): void
    {
        $unsent = [];
        foreach ($this->submissions as $submission) {
            $submission[0] === $sender ? $submission[4]->fail($reason) : $unsent[] = $submission;
        }
        $this->submissions = $unsent;
        foreach ($this->sent as [$owner, , , , $accepted]) {
            if ($owner === $sender) {
                $accepted->fail($reason);
            }
        }
    }

    /** Waits until all jobs have been sent, and the engine has answered. */
    public function flush(): void
    {
        if ($this->isSending) {
            $this->flushing->wait();
        }
    }

    private function sendAll(): void
    {
        while ($this->submissions !== []) {
            [, $maxJobs, , $mayExist] = $this->submissions[0];
            $jobs = $batch = [];
            $size = 0;
            foreach ($this->submissions as $i => [, $otherMaxJobs, $more, $otherMayExist]) {
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
            $this->sent = $batch;
            try {
                $this->answer($this->submit($jobs, $maxJobs, $mayExist));
            } catch (\Throwable $failure) {
                foreach ($this->awaited() as [, , , , $accepted]) {
                    $accepted->fail($failure);
                }
            }
        }
        $this->sent = [];
        $this->isSending = false;
        $this->flushing->wakeAll();
    }

    /** Completes the {@see send()} calls of the request that was pending. */
    private function answer(SubmitResult $result): void
    {
        $conflicts = array_flip($result->conflicts);
        $offset = 0;
        foreach ($this->sent as [, , $jobs, , $accepted]) {
            if (!$accepted->isCompleted()) { // otherwise it was abandoned
                // Only a dispatched job can be in conflict, and its submission consists of that job.
                isset($conflicts[$offset])
                    ? $accepted->fail(JobConflictException::of($this->queue, Job::givenId($jobs[0]->id)))
                    : $accepted->complete(max(0, min(\count($jobs), $result->accepted - $offset)));
            }
            $offset += \count($jobs);
        }
    }

    /** @return list<array{object, int, list<Job>, bool, OneShot<int>}> sent submissions that were not abandoned */
    private function awaited(): array
    {
        return array_values(array_filter($this->sent, static fn(array $sent): bool => !$sent[4]->isCompleted()));
    }

    /**
     * Sends a request, and repeats it while the engine is not available and a sender waits for the answer.
     *
     * @param list<Job> $jobs
     */
    private function submit(array $jobs, int $maxJobs, bool $mayExist): SubmitResult
    {
        return ReconnectBackoff::retry(
            $this->patience,
            fn(bool $isRepeated): SubmitResult => $isRepeated && $this->awaited() === []
                ? new SubmitResult(0)
                : $this->broker->submit($this->queue, $jobs, $maxJobs, $this->mailbox, $mayExist || $isRepeated),
        );
    }
}
