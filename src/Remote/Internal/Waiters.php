<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\Job;

/** Holds each job's waiters ({@see OutcomeReceiver}) in the order in which they were added. */
final class Waiters
{
    /** @var array<string, array<int, OutcomeReceiver>> by job id and object id; never empty */
    private array $byJob = [];

    /** @param list<Job> $jobs jobs that have no waiters yet; this method would replace earlier waiters */
    public function addForAll(array $jobs, OutcomeReceiver $waiter): void
    {
        $waiters = [spl_object_id($waiter) => $waiter]; // all jobs share this array, to save memory
        foreach ($jobs as $job) {
            $this->byJob[$job->id] = $waiters;
        }
    }

    public function add(string $id, OutcomeReceiver $waiter): void
    {
        $this->byJob[$id][spl_object_id($waiter)] = $waiter;
    }

    public function replace(string $id, OutcomeReceiver $old, OutcomeReceiver $new): void
    {
        foreach ($this->remove($id) as $waiter) {
            $this->add($id, $waiter === $old ? $new : $waiter);
        }
    }

    /** @return list<OutcomeReceiver> the removed waiters of the job */
    public function remove(string $id): array
    {
        $waiters = $this->of($id);
        unset($this->byJob[$id]);

        return $waiters;
    }

    public function removeOne(string $id, OutcomeReceiver $waiter): void
    {
        unset($this->byJob[$id][spl_object_id($waiter)]);
        if (($this->byJob[$id] ?? null) === []) {
            unset($this->byJob[$id]);
        }
    }

    /**
     * Removes all waiters of a client. Waiters of other clients for the same jobs stay.
     *
     * @return list<string> ids of the jobs for which the client had waiters
     */
    public function removeAllOf(QueueClient $client): array
    {
        $ids = [];
        foreach ($this->byJob as $id => $waiters) {
            $others = array_filter($waiters, static fn(OutcomeReceiver $waiter): bool => $waiter->client() !== $client);
            if (\count($others) < \count($waiters)) {
                $ids[] = $id;
            }
            if ($others === []) {
                unset($this->byJob[$id]);
            } else {
                $this->byJob[$id] = $others;
            }
        }

        return $ids;
    }

    public function isEmpty(): bool
    {
        return $this->byJob === [];
    }

    public function has(string $id): bool
    {
        return isset($this->byJob[$id]);
    }

    /** @return list<OutcomeReceiver> */
    public function of(string $id): array
    {
        return array_values($this->byJob[$id] ?? []);
    }

    /** @return list<string> */
    public function jobIds(): array
    {
        return array_keys($this->byJob);
    }

    /** @return list<string> ids of jobs with at least one cancelled waiter */
    public function cancelledJobIds(): array
    {
        $isCancelled = static fn(OutcomeReceiver $waiter): bool => $waiter->isCancelled();

        return array_keys(array_filter(
            $this->byJob,
            static fn(array $waiters): bool => array_filter($waiters, $isCancelled) !== [],
        ));
    }

    public function wantOutcome(string $id): bool
    {
        foreach ($this->byJob[$id] ?? [] as $waiter) {
            if ($waiter->wantsOutcome()) {
                return true;
            }
        }

        return false;
    }

    /** @return list<JobCodec> the codec of each client that waits for the job, once per client */
    public function codecs(string $id): array
    {
        $codecs = [];
        foreach ($this->byJob[$id] ?? [] as $waiter) {
            $codecs[spl_object_id($waiter->client())] = $waiter->client()->codec;
        }

        return array_values($codecs);
    }
}
