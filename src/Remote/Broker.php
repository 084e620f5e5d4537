<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * Stores queues in an engine that several machines reach. {@see RemoteExecutor} and {@see Agent} use it.
 *
 * A broker moves bytes: it knows nothing of tasks, signs nothing and decodes no frame. Its guarantees:
 *
 * - A job that {@see submit()} has confirmed exists until an agent has settled it, whatever process or machine fails,
 *   within the limits of the {@see Tier}. The same id is accepted once.
 * - A claimed job belongs to one owner until it is settled or the owner's lease has ended. Only that owner can settle
 *   it, within its lease and with the number of the claim. The first settlement counts.
 * - Frequent operations are sent in batches, and cost at most O(log n) in the depth of the queue.
 *
 * Every method suspends the fiber. Each throws {@see BrokerUnavailableException} when no answer arrives. The operation
 * may have been done then, and repeating it is safe. After a {@see BrokerRefusedException}, repeating does not help.
 */
interface Broker
{
    /**
     * Returns how durable the engine's settings make a job. The settings are read once per connection.
     *
     * @throws BrokerException also when the engine would lose or evict jobs
     */
    public function tier(): Tier;

    /**
     * Adds jobs to a queue, in their order, as long as the queue has room.
     *
     * When an id belongs to a different job, that is a conflict, and the new job is not added. Jobs are different when
     * their frames differ after the first 42 bytes, which depend on the signing key. Conflicts are detected while the
     * other job exists or its outcome is kept.
     *
     * @param list<Job> $jobs       at most 4,000
     * @param int       $backlog    largest number of jobs in the queue, not counting dead letters
     * @param string    $mailbox    receives the outcomes
     * @param bool      $maybeKnown whether these jobs may have been submitted before; then each id is also searched
     *                              among outcomes and dead letters
     *
     * @throws QueueFullException when the engine is out of memory
     * @throws BrokerException
     */
    public function submit(string $queue, array $jobs, int $backlog, string $mailbox, bool $maybeKnown): SubmitResult;

    /**
     * Returns the states of jobs. Outcomes that follow are also sent to this mailbox.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return array<string, JobState> by id
     *
     * @throws BrokerException
     */
    public function states(string $queue, array $ids, string $mailbox): array;

    /**
     * Withdraws jobs. A job that is not claimed is removed. The owner of a claimed job gets a message with the request
     * to end it.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return list<string> ids that are removed or were unknown, without those that have an outcome
     *
     * @throws BrokerException
     */
    public function withdraw(string $queue, array $ids): array;

    /**
     * Withdraws the jobs that are not claimed. Claimed jobs go on.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return list<string> ids that are removed or were unknown, without those that have an outcome
     *
     * @throws BrokerException
     */
    public function withdrawUnclaimed(string $queue, array $ids): array;

    /**
     * Drops the outcomes of jobs.
     *
     * @param list<string> $ids at most 4,000
     *
     * @throws BrokerException
     */
    public function dropOutcomes(string $queue, array $ids): void;

    /**
     * Opens a mailbox. Messages that arrive while the connection is down are lost. $onOpen is called after each
     * reconnection, so that the caller can look up the jobs that it waits for.
     *
     * @param \Closure(MailboxMessage): void $onMessage
     * @param \Closure(): void               $onOpen    called each time the mailbox is open, the first time included
     *
     * @return \Closure(): void closes the mailbox
     */
    public function openMailbox(string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure;

    /**
     * Takes or extends an agent's lease, by the engine's clock. Jobs whose delay is over become claimable, and so do
     * jobs of agents whose lease has ended.
     *
     * When no agent has renewed for a whole lease, the engine was away. Expired leases are then extended by half a
     * lease, so that running agents can {@see leave()} them. Each is extended only once until its owner renews it.
     *
     * @param float  $lease         seconds
     * @param bool   $isNew         whether the owner is new
     * @param string $description   JSON that describes the agent to operators
     * @param int    $maxDead       dead letters that are kept; beyond that the oldest are dropped
     * @param float  $deadRetention seconds for which dead letters are kept
     *
     * @return float|null seconds until the delay of the next job is over; null without delayed jobs
     *
     * @throws LeaseLostException when the lease has ended, so that other agents may claim its jobs
     * @throws BrokerException
     */
    public function renew(
        string $queue,
        string $owner,
        float $lease,
        bool $isNew,
        string $description,
        int $maxDead = \PHP_INT_MAX,
        float $deadRetention = \INF,
    ): ?float;

    /**
     * Settles jobs and claims others, the most urgent first. An owner that gets fewer than $maxClaims jobs receives a
     * message when more jobs are available.
     *
     * @param list<Settlement> $settlements
     * @param int              $maxClaims   jobs to claim, at most 4,000
     * @param float            $retention   seconds for which outcomes are kept
     * @param int              $firstNumber number of the first claimed job, in the order of this owner's claims
     * @param int|null         $lastBegun   number of the last job that may have begun before the next call; null if
     *                                      unchanged. If the owner is lost, only jobs up to this one count as crashed
     * @param int              $maxFrame    largest frame in bytes that the owner can read. Of a larger one, only the
     *                                      size is returned ({@see Delivery::$tooLarge})
     *
     * @throws LeaseLostException when the lease has ended: nothing was settled
     * @throws BrokerException
     */
    public function settle(
        string $queue,
        string $owner,
        array $settlements,
        int $maxClaims,
        float $retention,
        int $firstNumber = 0,
        ?int $lastBegun = null,
        int $maxFrame = \PHP_INT_MAX,
    ): Claim;

    /**
     * Returns the owner's jobs that are not among the known claims, because the answer with them was lost. Also returns
     * known jobs that were withdrawn, without their frames. When there are many, only some are returned.
     *
     * @param array<string, int> $known    numbers of claims, by the ids of their jobs
     * @param int                $maxFrame as in {@see settle()}
     *
     * @return list<Delivery>
     *
     * @throws LeaseLostException
     * @throws BrokerException
     */
    public function claimedJobs(
        string $queue,
        string $owner,
        array $known,
        int $maxFrame = \PHP_INT_MAX,
    ): array;

    /**
     * Stores items of a job that returns a generator, and notifies the mailboxes. Storing an item again has no
     * effect.
     *
     * @param int          $number of the claim
     * @param int          $offset number of items before these
     * @param list<string> $frames empty to announce items, or to ask for the number of items that were not taken
     *
     * @return int|null number of stored items that were not taken; null when no items are wanted, such as when all
     *                  listeners have been gone for ten seconds, or when the job is not the owner's
     *
     * @throws LeaseLostException
     * @throws BrokerException
     */
    public function putItems(string $queue, string $owner, string $id, int $number, int $offset, array $frames): ?int;

    /**
     * Returns the next items of a job, and drops those before them.
     *
     * @param int $offset number of items that were taken before
     *
     * @return list<string>
     *
     * @throws BrokerException
     */
    public function takeItems(string $queue, string $id, int $offset, int $limit): array;

    /**
     * Declares that no more items of a job will be taken. {@see putItems()} then returns null. Unlike
     * {@see withdraw()}, this does not end the job.
     *
     * @throws BrokerException
     */
    public function leaveItems(string $queue, string $id): void;

    /** Sends a task's report to the mailboxes. Never throws; the report may be lost. */
    public function report(string $queue, string $owner, string $id, int $number, string $frame): void;

    /**
     * Returns figures of the queue: waiting, running, delayed, blocked (by another job of their key), dead, agents and
     * oldest_ms (the age of the oldest job that may be claimed), and counters whose names end in "_total".
     *
     * @return array<string, int>
     *
     * @throws BrokerException
     */
    public function statistics(string $queue): array;

    /**
     * Returns at most $limit jobs with their details: owner, since, due, died, crashes, fails, attempts, why. Times are
     * in ms of the engine's clock. Waiting jobs are in the order in which they are claimed, dead ones latest first.
     *
     * @return array<string, array<string, int|float|string>> by id
     *
     * @throws BrokerException
     */
    public function list(string $queue, JobStatus $status, int $limit): array;

    /**
     * Returns the state of a job. Changes nothing: no mailbox is added for its outcome.
     *
     * @return JobStatus|null null for an unknown job
     *
     * @throws BrokerException
     */
    public function status(string $queue, string $id): ?JobStatus;

    /**
     * Turns dead letters into jobs again, as if they had never run.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return int number of revived jobs
     *
     * @throws BrokerException
     */
    public function revive(string $queue, array $ids): int;

    /**
     * Deletes dead letters for good.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return int number of deleted dead letters
     *
     * @throws BrokerException
     */
    public function delete(string $queue, array $ids): int;

    /**
     * Makes jobs claimable again that no agent can find, such as after an operator has changed the queue by hand.
     *
     * @return int number of such jobs
     *
     * @throws BrokerException
     */
    public function repair(string $queue): int;

    /**
     * Gives up an owner's lease. None of its jobs may be running. They become claimable at once and do not count as
     * crashed.
     *
     * @throws BrokerException
     */
    public function leave(string $queue, string $owner): void;
}
