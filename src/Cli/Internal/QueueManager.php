<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\JobStatus;

/** An operator's actions on a queue, in batches so that other clients of the engine are not delayed. */
final class QueueManager
{
    private const MAX_BATCH_JOBS = 500;

    public function __construct(private readonly Broker $broker, private readonly string $queue) {}

    /**
     * @param list<JobStatus> $statuses
     *
     * @throws BrokerException
     */
    public function report(array $statuses, int $limit): QueueReport
    {
        $jobs = [];
        foreach ($statuses as $status) {
            $jobs[$status->value] = $this->broker->list($this->queue, $status, $limit);
        }

        return new QueueReport($this->queue, $this->broker->statistics($this->queue), $jobs);
    }

    /**
     * @param list<string>|null $ids null for all dead letters
     *
     * @return int number of dead letters that are jobs again
     *
     * @throws BrokerException
     */
    public function retry(?array $ids): int
    {
        return $this->forDeadLetters($ids, fn(array $batch): int => $this->broker->revive($this->queue, $batch));
    }

    /**
     * @param list<string>|null $ids null for all dead letters
     *
     * @return int number of deleted dead letters
     *
     * @throws BrokerException
     */
    public function delete(?array $ids): int
    {
        return $this->forDeadLetters($ids, fn(array $batch): int => $this->broker->delete($this->queue, $batch));
    }

    /**
     * Withdraws as many jobs as wait now, so that this ends even if more are submitted.
     *
     * @return int number of removed jobs
     *
     * @throws BrokerException
     */
    public function purge(): int
    {
        $gone = 0;
        for ($left = $this->broker->statistics($this->queue)['waiting'] ?? 0; $left > 0; $left -= \count($ids)) {
            $ids = self::ids($this->broker->list($this->queue, JobStatus::Waiting, min($left, self::MAX_BATCH_JOBS)));
            if ($ids === []) {
                break;
            }
            $gone += \count($this->broker->withdraw($this->queue, $ids));
        }

        return $gone;
    }

    /**
     * @param list<string>|null           $ids
     * @param \Closure(list<string>): int $do
     *
     * @throws BrokerException
     */
    private function forDeadLetters(?array $ids, \Closure $do): int
    {
        if ($ids !== null) {
            return array_sum(array_map($do, array_chunk($ids, self::MAX_BATCH_JOBS)));
        }
        [$done, $seen] = [0, []];
        for ($limit = self::MAX_BATCH_JOBS; ; $limit += self::MAX_BATCH_JOBS * (int) ($new === [])) {
            $dead = self::ids($this->broker->list($this->queue, JobStatus::Dead, $limit));
            // a job that has died again since stays dead
            $new = array_values(array_filter($dead, static fn(string $id): bool => !isset($seen[$id])));
            $done += $new === [] ? 0 : $do($new);
            $seen += array_fill_keys($new, true);
            if (\count($dead) < $limit) {
                return $done;
            }
        }
    }

    /**
     * @param array<string, array<string, int|float|string>> $known
     *
     * @return list<string>
     */
    private static function ids(array $known): array
    {
        return array_map(strval(...), array_keys($known));
    }
}
