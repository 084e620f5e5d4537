<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\OneShot;
use Spindle\Internal\CannotWaitException;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Job;
use Spindle\Remote\JobConflictException;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\SubmitResult;

/**
 * Submits jobs to a queue. Jobs that arrive while a request is pending go together into the next request. Senders with
 * different broker retry timeouts have separate requests, so that no request is retried longer than its senders allow.
 * Senders with different `$maxJobs` have separate requests, too. The properties $submissions and $sent contain the
 * sender, the jobs, $checkIds and the future answer of each {@see send()} call.
 */
final class JobOutbox
{
    /** A request gets no further submission when it has this number of jobs or bytes. */
    private const MAX_BATCH_JOBS = 1000;
    private const MAX_BATCH_BYTES = 4 << 20;

    /** @var array<array-key, list<array{QueueClient, list<Job>, bool, OneShot<int>}>> unsent send() calls by timeout */
    private array $submissions = [];

    /** @var array<array-key, list<array{QueueClient, list<Job>, bool, OneShot<int>}>> unanswered calls by timeout */
    private array $sent = [];

    /** @var array<string, true> ids of jobs whose submission is pending, as keys */
    private array $pendingIds = [];

    /** Fibers that wait for the answers of pending requests; null before the first wait. */
    private ?FiberQueue $flushing = null;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $mailbox,
    ) {}

    public function isPending(string $id): bool
    {
        return isset($this->pendingIds[$id]);
    }

    /**
     * Sends jobs. Returns N if the engine has accepted the first N of them. While the engine is not available, retries
     * for the `$brokerRetryTimeout` of the sender's options.
     *
     * @param list<Job> $jobs     at most as many as {@see Broker::submit()} accepts
     * @param bool      $checkIds as in {@see Broker::submit()}
     *
     * @throws CannotWaitException|JobConflictException|\Spindle\Remote\BrokerException
     */
    public function send(QueueClient $sender, array $jobs, bool $checkIds): int
    {
        $timeout = (string) $sender->options->brokerRetryTimeout;
        /** @var OneShot<int> $accepted */
        $accepted = new OneShot();
        $this->submissions[$timeout][] = [$sender, $jobs, $checkIds, $accepted];
        foreach ($jobs as $job) {
            $this->pendingIds[$job->id] = true;
        }
        if (!isset($this->sent[$timeout])) {
            $this->sent[$timeout] = [];
            EventLoop::queue($this->sendAll(...), $timeout);
        }
        try {
            return $accepted->await();
        } catch (CannotWaitException $blocked) {
            array_pop($this->submissions[$timeout]); // the event loop has not run, so this call added the last entry

            throw $blocked;
        } finally {
            foreach ($jobs as $job) {
                unset($this->pendingIds[$job->id]);
            }
        }
    }

    /** Ends a sender's pending {@see send()} calls with $reason. Drops unsent jobs. The engine may accept sent jobs. */
    public function abandon(QueueClient $sender, \Throwable $reason): void
    {
        foreach ($this->submissions as $timeout => $submissions) {
            $unsent = [];
            foreach ($submissions as $submission) {
                $submission[0] === $sender ? $submission[3]->fail($reason) : $unsent[] = $submission;
            }
            $this->submissions[$timeout] = $unsent;
        }
        foreach ($this->sent as $batch) {
            foreach ($batch as [$owner, , , $accepted]) {
                if ($owner === $sender) {
                    $accepted->fail($reason);
                }
            }
        }
    }

    /** Waits until all jobs of earlier calls of {@see send()} have been sent, and the engine has answered. */
    public function flush(): void
    {
        $earlier = $this->unanswered();
        while (array_intersect_key($earlier, $this->unanswered()) !== []) {
            $this->flushing ??= new FiberQueue();
            $this->flushing->wait();
        }
    }

    /** @return array<int, OneShot<int>> futures of unsent and unanswered calls, by object id */
    private function unanswered(): array
    {
        $answers = [];
        foreach ([...array_values($this->sent), ...array_values($this->submissions)] as $calls) {
            foreach ($calls as [, , , $accepted]) {
                $answers[spl_object_id($accepted)] = $accepted;
            }
        }

        return $answers;
    }

    private function sendAll(string $timeout): void
    {
        while (($batch = $this->takeBatch($timeout)) !== []) {
            $this->sent[$timeout] = $batch;
            $this->trySubmit($batch);
            $this->sent[$timeout] = [];
            $this->flushing?->wakeAll();
        }
        unset($this->sent[$timeout], $this->submissions[$timeout]);
        $this->flushing?->wakeAll(); // in case abandon() has dropped the last unsent jobs
    }

    /** @param list<array{QueueClient, list<Job>, bool, OneShot<int>}> $batch */
    private function trySubmit(array $batch): void
    {
        // All requests after the first check the ids, because an attempt without an answer has perhaps added jobs.
        for ($checkIds = false; $batch !== []; $checkIds = true) {
            try {
                $batch = $this->submit($batch, $checkIds);
            } catch (\Throwable $failure) {
                $failed = $failure instanceof PayloadTooLargeException ? 1 : null; // the broker refused the first job
                foreach (array_splice($batch, 0, $failed) as [, , , $accepted]) {
                    $accepted->isCompleted ? null : $accepted->fail($failure);
                }
            }
            $batch = array_values(array_filter($batch, static fn(array $call): bool => !$call[3]->isCompleted));
        }
    }

    /** @return list<array{QueueClient, list<Job>, bool, OneShot<int>}> submissions for one request; empty if none */
    private function takeBatch(string $timeout): array
    {
        $batch = [];
        [$count, $size] = [0, 0];
        foreach ($this->submissions[$timeout] ?? [] as $submission) {
            $isFull = $count >= self::MAX_BATCH_JOBS || $size >= self::MAX_BATCH_BYTES;
            $hasOtherLimit = $submission[0]->options->maxJobs !== ($batch[0] ?? $submission)[0]->options->maxJobs;
            if ($isFull || $hasOtherLimit) {
                break;
            }
            $batch[] = $submission;
            $count += \count($submission[1]);
            foreach ($submission[1] as $job) {
                $size += \strlen($job->frame);
            }
        }
        $this->submissions[$timeout] = \array_slice($this->submissions[$timeout] ?? [], \count($batch));

        return $batch;
    }

    /**
     * Sends a request, and repeats it while the engine is not available and a sender waits for the answer.
     *
     * @param non-empty-list<array{QueueClient, list<Job>, bool, OneShot<int>}> $batch
     *
     * @return list<array{QueueClient, list<Job>, bool, OneShot<int>}> submissions to send again if a job is too large
     */
    private function submit(array $batch, bool $checkIds): array
    {
        $options = $batch[0][0]->options;
        $jobs = array_merge(...array_column($batch, 1));
        $checkIds = $checkIds || \in_array(true, array_column($batch, 2), true);
        $answers = array_column($batch, 3);
        $result = ReconnectBackoff::retry(
            $options->brokerRetryTimeout,
            function (bool $isRepeated) use ($answers, $jobs, $options, $checkIds): SubmitResult {
                if ($isRepeated && !self::isAnyAwaited($answers)) {
                    return new SubmitResult(0);
                }
                $checkIds = $checkIds || $isRepeated;
                try {
                    $result = $this->broker->submit($this->queue, $jobs, $options->maxJobs, $this->mailbox, $checkIds);
                } catch (QueueFullException $full) {
                    $result = new SubmitResult(0, refusal: $full);
                }
                $full = $result->refusal instanceof QueueFullException ? $result->refusal : null;
                // If an answer was lost, the engine has perhaps added the jobs before its memory was full.
                $cause = $isRepeated ? $full?->getPrevious() : null;

                return match (true) {
                    $cause instanceof BrokerUnavailableException => throw $cause,
                    $full !== null && $result->accepted === 0 => throw $full,
                    default => $result,
                };
            },
        );
        $conflicts = array_flip($result->conflicts);
        $offset = 0;
        foreach ($batch as $i => [, $jobs, , $accepted]) {
            if ($offset >= $result->accepted && $result->refusal instanceof PayloadTooLargeException) {
                return $i > 0 ? \array_slice($batch, $i) : throw $result->refusal;
            }
            if (!$accepted->isCompleted) { // otherwise, abandon() has already failed this call
                // Only ids that callers give to dispatch() can be in conflict. A dispatch() call submits one job.
                match (true) {
                    isset($conflicts[$offset]) => $accepted->fail(
                        JobConflictException::of($this->queue, Job::givenId($jobs[0]->id)),
                    ),
                    $offset >= $result->accepted && $result->refusal !== null => $accepted->fail($result->refusal),
                    default => $accepted->complete(max(0, min(\count($jobs), $result->accepted - $offset))),
                };
            }
            $offset += \count($jobs);
        }

        return [];
    }

    /** @param list<OneShot<int>> $answers */
    private static function isAnyAwaited(array $answers): bool
    {
        return array_filter($answers, static fn(OneShot $accepted): bool => !$accepted->isCompleted) !== [];
    }
}
