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
    private array $parcels = [];

    /** @var array<string, true> ids of jobs whose submission is not answered */
    private array $open = [];

    private bool $sending = false;

    /** @param float $patience seconds for which submissions are retried while the engine is not available */
    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $mailbox,
        private readonly float $patience,
    ) {}

    public function has(string $id): bool
    {
        return isset($this->open[$id]);
    }

    /**
     * @param list<Job> $jobs at most as many as {@see Broker::submit()} accepts
     *
     * @return int number of accepted jobs
     *
     * @throws CannotWaitException
     * @throws JobConflictException
     */
    public function send(int $limit, array $jobs, bool $maybeKnown): int
    {
        $suspension = EventLoop::getSuspension();
        $this->parcels[] = [$limit, $jobs, $maybeKnown, $suspension];
        foreach ($jobs as $job) {
            $this->open[$job->id] = true;
        }
        if (!$this->sending) {
            $this->sending = true;
            EventLoop::queue($this->sendAll(...));
        }
        try {
            /** @var int */
            return Fibers::suspend($suspension);
        } catch (CannotWaitException $blocked) {
            array_pop($this->parcels); // the loop has not run since

            throw $blocked;
        } finally {
            foreach ($jobs as $job) {
                unset($this->open[$job->id]);
            }
        }
    }

    private function sendAll(): void
    {
        while ($this->parcels !== []) {
            [$limit, , $maybeKnown] = $this->parcels[0];
            $jobs = $taken = [];
            $size = 0;
            foreach ($this->parcels as $i => [$itsLimit, $more, $known]) {
                if (
                    $i > 0
                    && (\count($jobs) >= self::MAX_BATCH_JOBS || $size >= self::MAX_BATCH_BYTES || $itsLimit !== $limit)
                ) {
                    break;
                }
                $maybeKnown = $maybeKnown || $known;
                $taken[] = $this->parcels[$i];
                foreach ($more as $job) {
                    $jobs[] = $job;
                    $size += \strlen($job->frame);
                }
            }
            $this->parcels = \array_slice($this->parcels, \count($taken));
            try {
                $result = $this->submit($jobs, $limit, $maybeKnown);
            } catch (\Throwable $failure) {
                foreach ($taken as [, , , $suspension]) {
                    $suspension->throw($failure);
                }

                continue;
            }
            $conflicts = array_flip($result->conflicts);
            $first = 0;
            foreach ($taken as [, $its, , $suspension]) {
                // only dispatched jobs, which are parcels of one, can have the id of another job
                isset($conflicts[$first])
                    ? $suspension->throw(JobConflictException::of($this->queue, Job::givenId($its[0]->id)))
                    : $suspension->resume(max(0, min(\count($its), $result->accepted - $first)));
                $first += \count($its);
            }
        }
        $this->sending = false;
    }

    /** @param list<Job> $jobs */
    private function submit(array $jobs, int $limit, bool $maybeKnown): SubmitResult
    {
        return ReconnectBackoff::ask(
            $this->patience,
            fn(bool $again): SubmitResult
                => $this->broker->submit($this->queue, $jobs, $limit, $this->mailbox, $maybeKnown || $again),
        );
    }
}
