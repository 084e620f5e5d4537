<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Remote\Broker;
use Spindle\Remote\BrokerException;
use Spindle\Remote\JobStatus;

/** What somebody who looks after a queue does with it, in batches that hold up nobody else. */
final class QueueKeeper
{
    private const BATCH = 500;

    public function __construct(private readonly Broker $broker, private readonly string $queue) {}

    /**
     * @param list<JobStatus> $statuses
     *
     * @throws BrokerException
     */
    public function report(array $statuses, int $most): QueueReport
    {
        $jobs = [];
        foreach ($statuses as $status) {
            $jobs[$status->value] = $this->broker->list($this->queue, $status, $most);
        }

        return new QueueReport($this->queue, $this->broker->figures($this->queue), $jobs);
    }

    /**
     * @param list<string>|null $ids null for all that there are
     *
     * @return int how many dead letters are jobs again
     *
     * @throws BrokerException
     */
    public function retry(?array $ids): int
    {
        return $this->ofDead($ids, fn(array $batch): int => $this->broker->revive($this->queue, $batch));
    }

    /**
     * @param list<string>|null $ids null for all that there are
     *
     * @return int how many dead letters are gone
     *
     * @throws BrokerException
     */
    public function delete(?array $ids): int
    {
        return $this->ofDead($ids, fn(array $batch): int => $this->broker->delete($this->queue, $batch));
    }

    /**
     * As many as wait now, so that it ends where others go on to submit.
     *
     * @return int how many jobs are gone
     *
     * @throws BrokerException
     */
    public function purge(): int
    {
        $gone = 0;
        for ($left = $this->broker->figures($this->queue)['waiting'] ?? 0; $left > 0; $left -= \count($ids)) {
            $ids = self::ids($this->broker->list($this->queue, JobStatus::Waiting, min($left, self::BATCH)));
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
    private function ofDead(?array $ids, \Closure $do): int
    {
        if ($ids !== null) {
            return array_sum(array_map($do, array_chunk($ids, self::BATCH)));
        }
        [$done, $seen] = [0, []];
        for ($most = self::BATCH; ; $most += self::BATCH * (int) ($new === [])) {
            $dead = self::ids($this->broker->list($this->queue, JobStatus::Dead, $most));
            $new = array_values(array_filter($dead, static fn(string $id): bool => !isset($seen[$id]))); // one that dies again meanwhile stays dead
            $done += $new === [] ? 0 : $do($new);
            $seen += array_fill_keys($new, true);
            if (\count($dead) < $most) {
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
