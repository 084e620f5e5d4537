<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * Stores queues in the engine: a server that all machines reach, such as Redis or Valkey.
 *
 * {@see RemoteExecutor} and {@see RemoteCommands} submit jobs: tasks or commands in a queue. Each {@see Agent} claims
 * jobs and settles them: it reports their outcomes, or returns them to the queue. A broker stores the signed bytes of a
 * job (its frame), but does not verify or decode them. Claimed jobs belong to an agent while its lease lasts. For each
 * lease, the agent has a new owner name ($owner). A broker guarantees:
 *
 * - After {@see submit()} has confirmed a job, the job exists until it has an outcome or is cancelled, even if
 *   processes or machines fail. {@see Durability} says what can be lost if the engine's own machine fails.
 * - If $checkIds is true, {@see submit()} adds no second job under an id while the first job exists, is a dead letter,
 *   has an outcome that is kept, or was cancelled by {@see cancelAndRecord()} in the last hour.
 * - A claimed job belongs to one owner until it is settled or the owner's lease ends. Until then, only this owner can
 *   settle it, with {@see Delivery::$claimNumber}. If the owner settles it twice, the second settlement has no effect.
 * - Frequent operations handle many jobs in one call, and take at most O(log n) time per job in a queue of n jobs.
 *
 * All methods except {@see openMailbox()} and {@see report()} suspend the fiber until the engine has answered. If no
 * answer arrives, they throw a {@see BrokerUnavailableException}, although the engine may have done the operation. The
 * caller can repeat the call, but submit() then needs $checkIds = true, so that no job is added twice. After a
 * {@see BrokerRefusedException}, repeating does not help.
 */
interface Broker
{
    /**
     * Returns how durable confirmed jobs are. The broker reads the engine's settings once for each connection.
     *
     * @throws BrokerException for example when the engine's settings let the engine lose or evict jobs
     */
    public function durability(): Durability;

    /**
     * Returns the maximum size in bytes of a frame that the engine accepts. The broker reads the engine's settings once
     * for each connection, and returns about PHP_INT_MAX if it may not read them.
     *
     * @throws BrokerException
     */
    public function maxFrameBytes(): int;

    /**
     * Adds jobs to a queue in the order of the list, until the queue is full.
     *
     * With $checkIds, a job whose id the queue already has is not added again, but counts as accepted. If the two jobs
     * with this id are different, the result also reports a conflict. Jobs are different if their frames differ after
     * the first 42 bytes, which depend on the signing key.
     *
     * @param list<Job> $jobs     at most 4,000
     * @param int       $maxJobs  maximum number of jobs without an outcome in the queue
     * @param string    $mailbox  name of the mailbox that receives the outcomes
     * @param bool      $checkIds whether the queue may already have jobs with these ids; false only if all ids are new
     *
     * @throws QueueFullException when the engine is out of memory, so that no job was added. A full queue, and a
     *                            refusal of a later job, are reported in the result
     * @throws PayloadTooLargeException when the first frame exceeds {@see maxFrameBytes()}; no job was added
     * @throws BrokerException
     */
    public function submit(string $queue, array $jobs, int $maxJobs, string $mailbox, bool $checkIds): SubmitResult;

    /**
     * Looks up the outcomes of jobs by their ids. If a job has no outcome yet, the mailbox (a channel for messages to a
     * caller) receives the outcome later.
     *
     * If {@see submit()} did not add a job, only the {@see SubmitResult} has the reason. After a conflict, attach()
     * reports the different job that already had the id. Otherwise, attach() reports that the job is unknown. A job
     * that agents can't read or verify becomes a dead letter, and its outcome is the refusal. Unlike {@see status()},
     * this method does not distinguish waiting jobs from running jobs.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return array<string, AttachResult> by id
     *
     * @throws BrokerException
     */
    public function attach(string $queue, array $ids, string $mailbox): array;

    /**
     * Cancels jobs: removes unclaimed jobs, and asks the owners of claimed jobs to end them. If an id begins with the
     * name of the submitter's mailbox, the submitter has generated the id, and no other process knows it. After a
     * cancellation, no process needs the outcome of such a job, so the broker may drop that outcome early.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return list<string> ids of the removed jobs, and ids that the broker does not know. Claimed jobs, and jobs whose
     *                      outcome is kept, are not in this list
     *
     * @throws BrokerException
     */
    public function cancel(string $queue, array $ids): array;

    /**
     * Cancels jobs as {@see cancel()} does, but also records the cancellation of unclaimed jobs. For an hour, such a
     * job has the status {@see JobStatus::Cancelled}, and {@see submit()} with $checkIds adds no job with its id. The
     * job's mailboxes receive a message with an outcome of 0 bytes, so that callers look up the job. A claimed job
     * whose owner's lease has ended counts as unclaimed, because its owner can't settle it.
     *
     * Any other claimed job ends with the outcome that its owner or a later owner reports. If this request is repeated
     * because its answer was lost, the returned status can be Cancelled: the first request has cancelled the job.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return array<string, JobStatus|null> status of each job before the call, by id; null for an unknown job. Only
     *                                       Waiting, Delayed and Running jobs were cancelled by this call
     *
     * @throws BrokerException
     */
    public function cancelAndRecord(string $queue, array $ids): array;

    /**
     * Cancels jobs that no agent has claimed. Claimed jobs continue.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return list<string> as from {@see cancel()}
     *
     * @throws BrokerException
     */
    public function cancelUnclaimed(string $queue, array $ids): array;

    /**
     * Drops the outcomes of jobs before their retention is over.
     *
     * @param list<string> $ids at most 4,000
     *
     * @throws BrokerException
     */
    public function dropOutcomes(string $queue, array $ids): void;

    /**
     * Starts to open a mailbox, and returns immediately. The mailbox reconnects until it is closed.
     *
     * Messages that are sent while the mailbox has no connection are lost. So $onOpen is called after each new
     * connection, with true if messages may have been lost. With true, the caller can fetch outcomes with {@see
     * attach()}. With false, the caller should not do so, because attach() could return an outcome before the mailbox
     * delivers earlier reports of the same job. For the first connection, the argument is usually false: the broker
     * tries to open it before it submits a job, so no message was lost.
     *
     * @param \Closure(MailboxMessage): void $onMessage
     * @param \Closure(bool): void           $onOpen
     *
     * @return \Closure(): void a function that closes the mailbox
     */
    public function openMailbox(string $mailbox, \Closure $onMessage, \Closure $onOpen): \Closure;

    /**
     * Takes or renews an owner's lease, by the engine's clock. Each call also makes a limited number of jobs claimable:
     * jobs whose delay is over, and jobs of leases that have ended. It also drops a limited number of old dead letters.
     * A message in the owner's mailbox names each other owner whose lease has ended.
     *
     * If no agent of the queue has renewed its lease for $lease seconds, the engine was probably not available. Leases
     * of other owners have perhaps ended since the last renewal, although their agents still run. This call extends
     * these leases until $lease / 2 seconds from now. So the agents can end their jobs and call {@see releaseLease()},
     * and these jobs do not count as crashed. A lease is not extended a second time before its owner renews it.
     *
     * @param float  $lease               seconds until the lease ends
     * @param bool   $isNew               true to take a new lease, false to renew the owner's lease
     * @param string $description         JSON that describes the agent to operators
     * @param int    $maxDeadLetters      number of dead letters that are kept; older ones are dropped
     * @param float  $deadLetterRetention seconds for which dead letters are kept
     *
     * @return float|null seconds until the next delayed job can be claimed; null if no job is delayed
     *
     * @throws LeaseLostException when the lease has ended, so that other agents can claim its jobs
     * @throws BrokerException
     */
    public function renewLease(
        string $queue,
        string $owner,
        float $lease,
        bool $isNew,
        string $description,
        int $maxDeadLetters = \PHP_INT_MAX,
        float $deadLetterRetention = \INF,
    ): ?float;

    /**
     * Settles jobs and claims others in one request: reports how claimed jobs have ended, and takes other jobs. Claims
     * these jobs first: jobs whose exclusive key is free again, jobs that an owner has lost, jobs that were returned
     * without a delay, and retried dead letters. An owner that gets fewer than $maxClaims jobs receives a message when
     * more jobs are available.
     *
     * The owner gives its jobs sequence numbers in the order in which it claims them. (A claim number counts the claims
     * of one job.) With $lastStartableSequenceNumber, the owner reports which of its jobs may have started.
     *
     * @param list<Settlement> $settlements                 jobs to settle
     * @param int              $maxClaims                   maximum number of jobs to claim, at most 4,000; 0 for none
     * @param float            $outcomeRetention            seconds for which the outcomes are kept
     * @param int              $firstSequenceNumber         sequence number of the first job that this call claims
     * @param int|null         $lastStartableSequenceNumber highest sequence number of a job that can start before the
     *                                                      next call; null if unchanged since the last call. If the
     *                                                      lease ends, only jobs up to this number count as crashed
     * @param int              $maxFrameBytes               size of the largest frame that the owner can read. For a
     *                                                      larger frame, only the size is returned
     *                                                      ({@see Delivery::$oversizeBytes})
     *
     * @throws LeaseLostException when the lease has ended: nothing was settled
     * @throws BrokerException
     */
    public function settleAndClaim(
        string $queue,
        string $owner,
        array $settlements,
        int $maxClaims,
        float $outcomeRetention,
        int $firstSequenceNumber = 0,
        ?int $lastStartableSequenceNumber = null,
        int $maxFrameBytes = \PHP_INT_MAX,
    ): ClaimResult;

    /**
     * Returns the claimed jobs that the owner does not know, because the answer to a claim was lost. Also returns known
     * jobs that were cancelled, without their frames. If the frames exceed 4 MiB, the answer leaves out some jobs.
     *
     * @param array<string, int> $known         claim numbers of the jobs that the owner knows, by id
     * @param int                $maxFrameBytes as in {@see settleAndClaim()}
     *
     * @return list<Delivery>
     *
     * @throws LeaseLostException
     * @throws BrokerException
     */
    public function claimedJobs(string $queue, string $owner, array $known, int $maxFrameBytes = \PHP_INT_MAX): array;

    /**
     * Stores items of a generator task, and notifies the job's mailboxes. Storing an item again has no effect.
     *
     * @param int          $claimNumber the claim's {@see Delivery::$claimNumber}
     * @param int          $offset      number of items that were stored before these
     * @param list<string> $frames      the items. An empty list with offset 0 only notifies the mailboxes again
     *
     * @return int|null number of stored items that no reader has taken. Null if no more items are wanted: the claim
     *                  has ended, the job was cancelled, {@see stopTakingItems()} was called, or all mailboxes that
     *                  listened for the items have been disconnected for 10 seconds. The mailbox of a job whose id
     *                  begins with the mailbox's name counts as listening from the beginning
     *
     * @throws LeaseLostException
     * @throws BrokerException
     */
    public function putItems(
        string $queue,
        string $owner,
        string $id,
        int $claimNumber,
        int $offset,
        array $frames,
    ): ?int;

    /**
     * Returns the next items of a job, and drops the items before them.
     *
     * @param int $offset number of items that were taken before
     * @param int $limit  maximum number of items to return
     *
     * @return list<string> frames of the next stored items: up to `$limit`. Fewer, but at least one, if more frames
     *     would have too many bytes in total. An answer of less than 1 MiB has all stored items up to `$limit`
     *
     * @throws BrokerException
     */
    public function takeItems(string $queue, string $id, int $offset, int $limit): array;

    /**
     * Declares that no more items of a running job will be taken. {@see putItems()} then returns null, so the agent
     * ends the task. Unlike {@see cancel()}, this method has no effect on an unclaimed job. If only the submitter knows
     * the job (see {@see cancel()}), the broker may drop the stored items. If that job has ended, the broker may also
     * drop the outcome.
     *
     * @throws BrokerException
     */
    public function stopTakingItems(string $queue, string $id): void;

    /** Sends a task's report to the job's mailboxes. Returns immediately and never throws. The report can be lost. */
    public function report(string $queue, string $owner, string $id, int $claimNumber, string $frame): void;

    /**
     * Returns the names of all queues that a job was submitted to, or that an agent has served, in alphabetical order.
     * Searches all keys of the engine, in many short requests.
     *
     * The list may contain names that Spindle does not accept for a queue. Another program, or another version of
     * Spindle, has created their keys.
     *
     * @return list<string>
     *
     * @throws BrokerException
     */
    public function queues(): array;

    /**
     * Returns statistics of the queue: the numbers of waiting, running, delayed, blocked and dead jobs, and of agents.
     * oldest_ms is the time in ms for which the oldest claimable job has been claimable. The names of counters end in
     * "_total". A blocked job waits until another job with its exclusive key has ended. It is not counted as waiting.
     *
     * @return array<string, int>
     *
     * @throws BrokerException
     */
    public function statistics(string $queue): array;

    /**
     * Returns at most $limit jobs of a status with their details. The details depend on the status:
     *
     * - running: owner, claim_number, crashes, failures, since (time of the claim)
     * - waiting: since (time at which the job became claimable)
     * - delayed: due (end of the delay), crashes, failures
     * - running and delayed jobs that were postponed: postponed_since, the time of the first postponement
     * - dead: died; and reason, attempts and owner, from the JSON in {@see Settlement::$reason}. Without an $id, only
     *   the first line of the reason, at most 500 bytes
     *
     * The values of `since`, `postponed_since`, `due` and `died` are Unix times in milliseconds, by the engine's clock.
     * Waiting jobs are in the order in which they are claimed, delayed jobs in the order in which they become
     * claimable, and dead letters latest first. Blocked jobs are not listed.
     *
     * With an $id, returns only this job, if it has the status. The details include exclusive_key if the job has one.
     * A waiting job then has `crashes` and `failures` instead of `since`. A blocked job also has blocked = 1.
     *
     * @param string|null $id null for all jobs of the status
     *
     * @return array<string, array<string, int|float|string>> details by id. An id that is an integer has the prefix #,
     *                                                        because PHP would convert such a key to int
     *
     * @throws BrokerException
     */
    public function listJobs(string $queue, JobStatus $status, int $limit, ?string $id = null): array;

    /**
     * Returns the status of a job; null for an unknown job. Unlike {@see attach()}, this method changes nothing.
     *
     * @throws BrokerException
     */
    public function status(string $queue, string $id): ?JobStatus;

    /**
     * Turns dead letters into waiting jobs with 0 attempts and 0 crashes, and returns their number. Ignores other ids.
     *
     * @param list<string> $ids at most 4,000
     *
     * @throws BrokerException
     */
    public function retryDeadLetters(string $queue, array $ids): int;

    /**
     * Deletes dead letters and their outcomes, so that their ids can be used again. Returns their number. Ignores
     * other ids.
     *
     * @param list<string> $ids at most 4,000
     *
     * @throws BrokerException
     */
    public function deleteDeadLetters(string $queue, array $ids): int;

    /**
     * Finds jobs that no agent could claim, for example because an operator has edited the queue's data. Makes these
     * jobs claimable, and returns their number.
     *
     * @throws BrokerException
     */
    public function repair(string $queue): int;

    /**
     * Ends an owner's lease. The owner must end its running jobs before the call. After the call, other owners can
     * claim the jobs of this lease: up to 1,000 jobs immediately, and the rest when other owners renew their leases.
     * The release does not count as a crash of the jobs. If the lease has already ended, the call has the same effect
     * on the jobs that are not claimable yet. Does nothing for an unknown owner.
     *
     * @throws BrokerException
     */
    public function releaseLease(string $queue, string $owner): void;
}
