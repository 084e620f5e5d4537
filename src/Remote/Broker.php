<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * Queues in an engine that several machines reach: what {@see RemoteExecutor} and {@see Agent} stand on.
 *
 * A broker moves bytes. It knows nothing of tasks, signs nothing and reads no frame. What it promises:
 *
 * - A job that {@see submit()} has confirmed is there until an agent has settled it, whatever dies, as far as the
 *   {@see Tier} goes. The same id is taken in once.
 * - A job that was claimed belongs to one owner until it is settled or the owner's lease has ended. Only that owner, with the
 *   number of that claim and within its lease, settles it: the first that does decides.
 * - All that takes time is asked of the engine in batches, and costs O(log n) in the depth of the queue, or less.
 *
 * Every method suspends the fiber. Each throws {@see BrokerUnavailableException} when there is no answer, and then may have
 * been done: each can be asked again. {@see BrokerRefusedException} says that to ask again does not help.
 */
interface Broker
{
    /**
     * What the engine's settings promise. Looks at them once.
     *
     * @throws BrokerException also when the engine would lose or evict jobs
     */
    public function tier(): Tier;

    /**
     * Takes jobs in, as many of the first as the queue has room for.
     *
     * @param list<Job> $jobs       at most 4,000
     * @param int       $limit      jobs that the queue may have, without its dead letters
     * @param string    $mailbox    that gets the outcomes
     * @param bool      $maybeKnown whether it may have been asked this before, with no answer: then each id is looked for,
     *                              among the outcomes and dead letters too
     *
     * An id may belong to another job: one whose frame differs in more than its first 42 bytes, which tell who signed it. That is a conflict, and
     * the job is not taken in. It is noticed as long as the other one is there, or its outcome is kept.
     *
     * @throws QueueFullException when the engine has no memory for them
     * @throws BrokerException
     */
    public function submit(string $queue, array $jobs, int $limit, string $mailbox, bool $maybeKnown): SubmitResult;

    /**
     * What has become of jobs. Outcomes to come go to this mailbox as well.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return array<string, JobState> by id
     *
     * @throws BrokerException
     */
    public function look(string $queue, array $ids, string $mailbox): array;

    /**
     * Nobody wants these jobs any more. One that nobody has claimed is gone; of another one its owner is told.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return list<string> those that are gone, or were not there; not those that have an outcome
     *
     * @throws BrokerException
     */
    public function withdraw(string $queue, array $ids): array;

    /**
     * As {@see withdraw()}, but a job that somebody has claimed goes on.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return list<string> those that are gone, or were not there; not those that have an outcome
     *
     * @throws BrokerException
     */
    public function recall(string $queue, array $ids): array;

    /**
     * The outcomes of these jobs need not be kept any longer.
     *
     * @param list<string> $ids at most 4,000
     *
     * @throws BrokerException
     */
    public function forget(string $queue, array $ids): void;

    /**
     * Opens a mailbox. What is sent to it while nobody can be reached is lost, and "open" is called each time that it is open
     * again: then all that one waits for is to be looked for.
     *
     * @param \Closure(Letter): void $letter
     * @param \Closure(): void       $open   called when it is open, the first time as well
     *
     * @return \Closure(): void closes it
     */
    public function openMailbox(string $mailbox, \Closure $letter, \Closure $open): \Closure;

    /**
     * Takes or extends an agent's lease, by the engine's clock. With that, jobs whose delay is over become claimable, and those of
     * agents whose lease has ended. Leases that ended while nobody was heard of for that long go on for half of one: the engine was away, and
     * who lives can {@see leave()} them. That happens once to a lease, until its owner is heard of.
     *
     * @param float  $lease seconds
     * @param bool   $joins whether the owner is new
     * @param string $about in JSON, for who looks at the queue
     * @param int    $mostDead   dead letters that are kept; the oldest of more are dropped
     * @param float  $oldestDead seconds that they are kept
     *
     * @return float|null seconds until the next delay is over; null for none
     *
     * @throws LeaseLostException when its lease has ended: its jobs are others' now
     * @throws BrokerException
     */
    public function renew(string $queue, string $owner, float $lease, bool $joins, string $about, int $mostDead = \PHP_INT_MAX, float $oldestDead = \INF): ?float;

    /**
     * Settles jobs and claims others, the most urgent first. An owner that gets fewer than it wanted is sent a letter as
     * soon as there are more.
     *
     * @param list<Settlement> $settlements
     * @param int              $want        jobs, at most 4,000
     * @param float            $retention   seconds that outcomes are kept
     * @param int              $first       number of the first job that is claimed, in the order of this owner's claims
     * @param int|null         $begun       number of the last one that may have begun before the next call: if the owner is
     *                                      lost, only those up to this one have crashed; null if it is the same as before
     *
     * @throws LeaseLostException when its lease has ended: nothing was settled
     * @throws BrokerException
     */
    public function settle(string $queue, string $owner, array $settlements, int $want, float $retention, int $first = 0, ?int $begun = null): Claim;

    /**
     * The jobs that an owner has but for the claims that it knows of, which it was given in an answer that did not come; and those that it knows
     * of and that were withdrawn, without their frames. Not all when there are many.
     *
     * @param array<string, int> $known numbers of claims, by the ids of their jobs
     *
     * @return list<Delivery>
     *
     * @throws LeaseLostException
     * @throws BrokerException
     */
    public function held(string $queue, string $owner, array $known): array;

    /**
     * Stores items of a job whose outcome is a sequence, and tells the mailboxes. Each is stored once, however often it is stored.
     *
     * @param int          $number of the claim
     * @param int          $first  how many there are before these
     * @param list<string> $frames none to say that there will be items, or to ask
     *
     * @return int|null how many are stored and not taken; null when nobody wants them, such as when all who listened have
     *                  been gone for ten seconds, or the job is not the owner's
     *
     * @throws LeaseLostException
     * @throws BrokerException
     */
    public function putItems(string $queue, string $owner, string $id, int $number, int $first, array $frames): ?int;

    /**
     * The next items of a job. Those before them are gone.
     *
     * @param int $from how many were taken
     *
     * @return list<string>
     *
     * @throws BrokerException
     */
    public function takeItems(string $queue, string $id, int $from, int $most): array;

    /**
     * Nobody takes more items of a job: who stores the next one is told so. Unlike one that is withdrawn, it is not ended for that.
     *
     * @throws BrokerException
     */
    public function leaveItems(string $queue, string $id): void;

    /** Sends something that a task tells to the mailboxes. It may be lost, and never throws. */
    public function report(string $queue, string $owner, string $id, int $number, string $frame): void;

    /**
     * What there is, now and in all: waiting, running, delayed, blocked (by another job of their key), dead, agents, oldest_ms (the age of the
     * oldest job that may be claimed), and counters whose names end in "_total".
     *
     * @return array<string, int>
     *
     * @throws BrokerException
     */
    public function figures(string $queue): array;

    /**
     * Some jobs and what is known of them, for somebody who looks: owner, since, due, died, crashes, fails, attempts, why; times in ms of the
     * engine's clock. Those that wait in the order in which they will be claimed, those that died last first.
     *
     * @return array<string, array<string, int|float|string>> by id
     *
     * @throws BrokerException
     */
    public function list(string $queue, JobStatus $status, int $most): array;

    /**
     * Where a job is. Nothing is changed by that, and no mailbox gets its outcome.
     *
     * @return JobStatus|null null when nothing is known of it
     *
     * @throws BrokerException
     */
    public function status(string $queue, string $id): ?JobStatus;

    /**
     * Dead letters are jobs again, as if they had never run.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return int how many
     *
     * @throws BrokerException
     */
    public function revive(string $queue, array $ids): int;

    /**
     * Dead letters are gone for good.
     *
     * @param list<string> $ids at most 4,000
     *
     * @return int how many
     *
     * @throws BrokerException
     */
    public function delete(string $queue, array $ids): int;

    /**
     * Looks whether jobs are there that no agent can find, as when an operator has changed something by hand, and makes them claimable.
     *
     * @return int how many there were
     *
     * @throws BrokerException
     */
    public function repair(string $queue): int;

    /**
     * An owner gives up its lease: nothing of what it had runs any more. That is others' at once, and has not crashed.
     *
     * @throws BrokerException
     */
    public function leave(string $queue, string $owner): void;
}
