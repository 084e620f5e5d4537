<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

use Spindle\Cli\Internal\BrokerOptions;
use Spindle\Cli\Internal\UsageException;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\JobStatus;

use function Amp\async;
use function Amp\Future\await;

/** Executes the actions of `spindle queue`. Changes jobs in small batches, so that other clients wait only briefly. */
final class QueueManager
{
    private const MAX_BATCH_JOBS = 500;

    /** Largest number of tries to read a job. The status can change between the requests status() and listJobs(). */
    private const MAX_LOOKUPS = 5;

    public function __construct(private readonly Broker $broker, private readonly string $queue) {}

    /**
     * Returns the report of all queues. If a queue can't be read, the report has the reason instead of numbers.
     *
     * @throws BrokerException
     */
    public function list(): QueueListReport
    {
        $queues = $unreadable = [];
        foreach ($this->broker->queues() as $queue) {
            try {
                $queues[] = [BrokerOptions::queueName('the name', $queue), $this->broker->statistics($queue)];
            } catch (BrokerUnavailableException $failure) {
                $unreadable[] = [$queue, $failure->getMessage()];
            } catch (UsageException) {
                $unreadable[] = [$queue, 'The name is not valid for a queue. Another program or another version of '
                    . 'Spindle has created its keys.'];
            }
        }

        return new QueueListReport($queues, $unreadable);
    }

    /**
     * @param list<JobStatus> $statuses
     *
     * @throws BrokerException
     */
    public function report(array $statuses, int $limit): QueueReport
    {
        $jobs = [];
        foreach ($statuses as $status) {
            $jobs[$status->value] = $this->broker->listJobs($this->queue, $status, $limit);
        }

        return new QueueReport($this->queue, $this->broker->statistics($this->queue), $jobs);
    }

    /**
     * Returns the report of one job; null if the queue does not know the job.
     *
     * @throws BrokerException
     */
    public function job(string $id): ?QueuedJobReport
    {
        [$status, $jobs] = [null, []];
        for ($i = 0; $i < self::MAX_LOOKUPS && $jobs === []; ++$i) {
            $status = $this->broker->status($this->queue, $id);
            if (\in_array($status, [null, JobStatus::Done, JobStatus::Cancelled], true)) {
                break;
            }
            $jobs = $this->broker->listJobs($this->queue, $status, 1, $id);
        }

        return $status === null ? null : new QueuedJobReport($this->queue, $id, $status, $jobs[$id] ?? []);
    }

    /**
     * @param list<string> $ids
     *
     * @return array{int, list<string>, int} number of cancelled jobs, ids that belong to no unfinished job, and number
     *                                       of cancelled jobs that were running: their agents end these jobs
     *
     * @throws BrokerException
     */
    public function cancel(array $ids): array
    {
        $statuses = [];
        foreach (array_chunk($ids, self::MAX_BATCH_JOBS) as $batch) {
            $statuses += $this->broker->cancelAndRecord($this->queue, $batch);
        }
        $unfinished = array_filter($statuses, static fn(?JobStatus $status): bool => match ($status) {
            JobStatus::Waiting, JobStatus::Delayed, JobStatus::Running => true,
            default => false,
        });
        $running = \count(array_keys($unfinished, JobStatus::Running, true));

        return [\count($unfinished), array_keys(array_diff_key($statuses, $unfinished)), $running];
    }

    /**
     * @param list<string>|null $ids null for all dead letters
     *
     * @return array{int, list<string>} number of retried dead letters, and the ids that are not dead letters
     *
     * @throws BrokerException
     */
    public function retry(?array $ids): array
    {
        return $this->forDeadLetters($ids, $this->broker->retryDeadLetters(...));
    }

    /**
     * @param list<string>|null $ids null for all dead letters
     *
     * @return array{int, list<string>} number of deleted dead letters, and the ids that are not dead letters
     *
     * @throws BrokerException
     */
    public function delete(?array $ids): array
    {
        return $this->forDeadLetters($ids, $this->broker->deleteDeadLetters(...));
    }

    /**
     * Removes at most as many waiting jobs as the queue has at the start, so that new jobs do not prolong the purge.
     *
     * @return array{int, list<string>} number of removed jobs, and no ids
     *
     * @throws BrokerException
     */
    public function purge(): array
    {
        $removed = 0;
        $waiting = $this->broker->statistics($this->queue)['waiting'] ?? 0;
        for ($remaining = $waiting; $remaining > 0; $remaining -= \count($ids)) {
            $limit = min($remaining, self::MAX_BATCH_JOBS);
            $ids = self::ids($this->broker->listJobs($this->queue, JobStatus::Waiting, $limit));
            if ($ids === []) {
                break;
            }
            $removed += \count($this->broker->cancel($this->queue, $ids));
        }

        return [$removed, []];
    }

    /**
     * @param list<string>|null $ids null for all dead letters
     * @param \Closure(string, list<string>): int $action method of the broker; returns how many jobs were changed
     *
     * @return array{int, list<string>} number of changed jobs, and the ids that are not dead letters
     */
    private function forDeadLetters(?array $ids, \Closure $action): array
    {
        if ($ids === null) {
            return [$this->forAllDeadLetters($action), []];
        }
        $missing = [];
        foreach (array_chunk($ids, self::MAX_BATCH_JOBS) as $batch) {
            // One request for each id, because the answer only has the number of changed jobs.
            $changed = await(array_map(fn(string $id) => async($action, $this->queue, [$id]), $batch));
            $missing[] = array_filter($batch, static fn(int $i): bool => $changed[$i] === 0, \ARRAY_FILTER_USE_KEY);
        }
        $missing = array_merge(...$missing);

        return [\count($ids) - \count($missing), $missing];
    }

    /** @param \Closure(string, list<string>): int $action */
    private function forAllDeadLetters(\Closure $action): int
    {
        [$changed, $seen] = [0, []];
        // Each list begins with the newest dead letters, so a retried job that has died again precedes older dead
        // letters. No job is retried twice. If a list contains only jobs that were retried before, $limit is too small
        // to reach the older dead letters, so $limit grows for the next list.
        for ($limit = self::MAX_BATCH_JOBS; ; $limit += self::MAX_BATCH_JOBS * (int) ($new === [])) {
            $dead = self::ids($this->broker->listJobs($this->queue, JobStatus::Dead, $limit));
            $new = array_values(array_filter($dead, static fn(string $id): bool => !isset($seen[$id])));
            $changed += $new === [] ? 0 : $action($this->queue, $new);
            $seen += array_fill_keys($new, true);
            if (\count($dead) < $limit) {
                return $changed;
            }
        }
    }

    /**
     * @param array<string, array<string, int|float|string>> $jobs details by id
     *
     * @return list<string>
     */
    private static function ids(array $jobs): array
    {
        return array_map(strval(...), array_keys($jobs));
    }
}
