<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use Spindle\Remote\AttachResult;
use Spindle\Remote\ClaimResult;
use Spindle\Remote\Delivery;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\SubmitResult;

/** One queue of a {@see MemoryEngine}. No operation depends on the number of jobs, except {@see list()}. */
final class MemoryQueue
{
    /** Largest outcome in a message in bytes. */
    private const INLINE = 65536;
    private const MAX_ANSWER_BYTES = 4 << 20;

    private const ITEMS_KEPT = 86400.0;

    private const CANCELLATION_KEPT = 3600.0;

    /** Bytes of a frame that identify the signer. */
    private const SEAL = 42;

    /** @var array<string, MemoryJob> jobs without an outcome, by id */
    private array $jobs = [];

    /**
     * @var \SplQueue<array{string, int}> ids and tickets of jobs that may be claimed, before those of {@see
     *                                    self::$ready}
     */
    private \SplQueue $urgent;

    /** @var \SplQueue<array{string, int}> */
    private \SplQueue $ready;

    /** @var \SplMinHeap<array{float, int, string}> when, ticket, id */
    private \SplMinHeap $delayed;

    /** @var array<array-key, string> ids of running jobs, by key */
    private array $keys = [];

    /** @var array<array-key, \SplQueue<array{string, int}>> ids and tickets of blocked jobs, by key */
    private array $blocked = [];

    /** @var array<string, MemoryAgent> */
    private array $agents = [];

    /** @var \SplMinHeap<array{float, string}> ends of leases, and owners */
    private \SplMinHeap $ends;

    /** @var \SplQueue<string> idle owners */
    private \SplQueue $idle;

    /** @var array<string, array{MemoryJob, string, float}> job, reason and time, by id */
    private array $dead = [];

    /** @var array<string, array{string, float, string}> frame, until when, and the job's frame */
    private array $outcomes = [];

    /** @var array<string, array{float, string}> until when, and frame, of cancelled jobs without an outcome */
    private array $cancelled = [];

    /** @var array<string, true> jobs whose outcome is a cancellation, by id */
    private array $endedAsCancelled = [];

    /** @var array<string, array{array<int, string>, int, float}> items by index, next index and expiry, by job id */
    private array $items = [];

    /** @var \SplMinHeap<array{float, string}> expiry of outcomes and items, and job ids */
    private \SplMinHeap $expiring;

    /** @var array<string, int> number of jobs by status */
    private array $counts = ['' => 0, 'waiting' => 0, 'running' => 0, 'delayed' => 0, 'blocked' => 0];

    /** @var array<string, int> */
    private array $totals = [
        'submitted_total' => 0,
        'done_total' => 0,
        'died_total' => 0,
        'cancelled_total' => 0,
        'retried_total' => 0,
        'postponed_total' => 0,
        'released_total' => 0,
        'lost_total' => 0,
        'stale_total' => 0,
        'repaired_total' => 0,
        'dead_letters_retried_total' => 0,
        'forgotten_total' => 0,
    ];

    private int $lastTicket = 0;

    /** Time of the last heartbeat of any agent. */
    private float $lastHeartbeat = \INF;

    public function __construct(private readonly MemoryEngine $engine)
    {
        $this->urgent = new \SplQueue();
        $this->ready = new \SplQueue();
        $this->idle = new \SplQueue();
        $this->delayed = new \SplMinHeap();
        $this->ends = new \SplMinHeap();
        $this->expiring = new \SplMinHeap();
    }

    /** @param list<Job> $jobs */
    public function submit(array $jobs, int $maxJobs, string $mailbox): SubmitResult
    {
        $this->expire();
        $taken = $added = 0;
        $conflicts = [];
        foreach ($jobs as $i => $job) {
            $known = $this->jobs[$job->id]->frame
                ?? $this->dead[$job->id][0]->frame
                ?? $this->outcomes[$job->id][2]
                ?? $this->cancelled[$job->id][1]
                ?? null;
            if ($known !== null) {
                if (substr($known, self::SEAL) !== substr($job->frame, self::SEAL)) {
                    $conflicts[] = $i;
                }
            } else {
                if (\count($this->jobs) >= $maxJobs) {
                    break;
                }
                $added += $this->add(
                    new MemoryJob($job->id, $job->frame, $job->exclusiveKey, [$mailbox => $mailbox]),
                    $job->delay,
                    $this->ready,
                );
                ++$this->totals['submitted_total'];
            }
            ++$taken;
        }
        $this->wake($added);
        $due = $this->delayed->isEmpty() ? \INF : $this->delayed->top()[0] - $this->engine->now();
        if ($due < 2.0 && !$this->idle->isEmpty()) {
            $this->engine->send($this->idle->bottom(), new MailboxMessage(nextDueIn: max(0.0, $due)));
        }

        return new SubmitResult($taken, $conflicts);
    }

    /**
     * @param list<string> $ids
     *
     * @return array<string, AttachResult>
     */
    public function attach(array $ids, string $mailbox): array
    {
        $this->expire();
        $states = [];
        foreach ($ids as $id) {
            $outcome = $this->outcomes[$id][0] ?? null;
            $job = $this->jobs[$id] ?? null;
            $isCancelled = $outcome === null && $job === null && isset($this->cancelled[$id]);
            $isKnown = $outcome !== null || $job !== null || $isCancelled;
            $states[$id] = new AttachResult($isKnown, $outcome, $outcome !== null, $isCancelled);
            if ($job !== null) {
                $job->mailboxes[$mailbox] = $mailbox;
            }
        }

        return $states;
    }

    /** @param list<string> $ids */
    public function dropOutcomes(array $ids): void
    {
        foreach ($ids as $id) {
            unset($this->outcomes[$id]);
        }
    }

    /**
     * @param list<string> $ids
     * @param bool         $claimed whether claimed jobs are cancelled too
     *
     * @return list<string>
     */
    public function cancel(array $ids, bool $claimed = true): array
    {
        $gone = [];
        $ready = 0;
        foreach ($ids as $id) {
            $job = $this->jobs[$id] ?? null;
            if ($job === null && isset($this->outcomes[$id])) {
                continue;
            }
            if ($job?->status === 'running') {
                if ($claimed) {
                    $job->cancelled = true;
                    $this->engine->send($job->owner, new MailboxMessage(cancelled: [$id => $job->number]));
                }

                continue;
            }
            $gone[] = $id;
            unset($this->items[$id]);
            if ($job !== null) {
                $this->remove($job);
                ++$this->totals['cancelled_total'];
                $ready += isset($this->keys[$job->key]) ? 0 : $this->next($job->key);
            }
        }
        $this->wake($ready);

        return $gone;
    }

    /**
     * @param list<string> $ids
     *
     * @return array<string, JobStatus|null>
     */
    public function cancelAndRecord(array $ids): array
    {
        $statuses = [];
        foreach ($ids as $id) {
            $statuses[$id] = $this->status($id);
            $job = $this->jobs[$id] ?? null;
            $agent = $this->agents[$job->owner ?? ''] ?? null;
            if ($job?->status === 'running' && $agent !== null && $agent->end <= $this->engine->now()) {
                $this->engine->send($job->owner, new MailboxMessage(cancelled: [$id => $job->number]));
                unset($agent->jobs[$id]);
                $this->move($job, 'waiting');
                $this->wake($this->unlock($job));
            }
            if ($this->cancel([$id]) !== [] && $job !== null) {
                $until = $this->engine->now() + self::CANCELLATION_KEPT;
                $this->cancelled[$id] = [$until, $job->frame];
                $this->expiring->insert([$until, $id]);
                $this->notify($job, new MailboxMessage(outcomes: [$id => '']));
            }
        }

        return $statuses;
    }

    /** @throws LeaseLostException */
    public function renew(
        string $owner,
        float $lease,
        bool $isNew,
        int $maxDeadLetters,
        float $deadLetterRetention,
    ): ?float {
        $now = $this->engine->now();
        if ($now - $this->lastHeartbeat >= $lease) { // the engine was away
            foreach ($this->agents as $other) {
                $endedMeanwhile = $other->end >= $this->lastHeartbeat && $other->end <= $now;
                if ($endedMeanwhile && $other->name !== $owner && !$other->spared) {
                    $other->spared = true;
                    $other->end = $now + $lease / 2;
                    $this->ends->insert([$other->end, $other->name]);
                }
            }
        }
        $agent = $isNew ? $this->agents[$owner] ??= new MemoryAgent($owner) : $this->agent($owner);
        $this->lastHeartbeat = $now;
        $agent->end = $now + $lease;
        $agent->spared = false;
        $this->ends->insert([$agent->end, $owner]);
        $this->wake($this->promote() + $this->reclaimJobs($owner));
        $kept = array_filter($this->dead, static fn(array $dead): bool => $dead[2] > $now - $deadLetterRetention);
        $kept = \array_slice($kept, -min($maxDeadLetters, max(1, \count($kept))), null, true);
        $this->totals['forgotten_total'] += \count($this->dead) - \count($kept);
        $this->dead = $kept;

        return $this->delayed->isEmpty() ? null : max(0.0, $this->delayed->top()[0] - $this->engine->now());
    }

    /**
     * @param list<Settlement> $settlements
     *
     * @throws LeaseLostException
     */
    public function settle(
        string $owner,
        array $settlements,
        int $maxClaims,
        float $outcomeRetention,
        int $first = 0,
        ?int $lastStartableSequenceNumber = null,
        int $maxFrameBytes = \PHP_INT_MAX,
    ): ClaimResult {
        $agent = $this->agent($owner);
        $agent->begun = $lastStartableSequenceNumber ?? $agent->begun;
        $this->expire();
        $stale = [];
        /** @var array<array-key, array<string, string>> $messages */
        $messages = [];
        $ready = 0;
        foreach ($settlements as $settlement) {
            $job = $agent->jobs[$settlement->id] ?? null;
            if ($job?->number !== $settlement->claimNumber) {
                $stale[] = $settlement->id;
                ++$this->totals['stale_total'];

                continue;
            }
            unset($agent->jobs[$job->id]);
            $kind = $settlement->kind;
            $job->refusals += $kind === SettlementKind::Refused ? 1 : 0;
            $job->postponedSince ??= $kind === SettlementKind::Postpone ? $this->engine->now() : null;
            if ($kind === SettlementKind::Refused || $kind === SettlementKind::RetryElsewhere) {
                $job->refusedBy = $owner;
            }
            if (!\in_array($kind, [SettlementKind::Done, SettlementKind::Dead, SettlementKind::Cancelled], true)) {
                $job->crashes = $settlement->crashes;
                $job->failures = $settlement->failures;
                $ready += $this->add($job, $job->cancelled ? 0.0 : $settlement->delay, $this->urgent);
            } else {
                $this->end($job, $settlement, $kind, $outcomeRetention);
                foreach ($job->mailboxes as $mailbox) {
                    $isInline = \strlen($settlement->frame) <= self::INLINE;
                    $messages[$mailbox][$job->id] = $isInline ? $settlement->frame : '';
                }
            }
            ++$this->totals[$kind === SettlementKind::Dead ? 'died_total' : $kind->counter()];
            $ready += $this->unlock($job);
        }
        foreach ($messages as $mailbox => $outcomes) {
            $this->engine->send((string) $mailbox, new MailboxMessage(outcomes: $outcomes));
        }
        $ready += $this->promote();
        $deliveries = $this->claim($agent, $maxClaims, $first, $maxFrameBytes);
        if ($maxClaims > 0) {
            $this->setIdle($agent, $maxClaims - \count($deliveries));
        }
        $this->wake($ready - \count($deliveries));

        return new ClaimResult($deliveries, $stale);
    }

    /**
     * @param array<string, int> $known numbers of claims, by ids
     *
     * @return list<Delivery>
     *
     * @throws LeaseLostException
     */
    public function claimedJobs(string $owner, array $known, int $maxFrameBytes = \PHP_INT_MAX): array
    {
        $unknown = array_filter(
            $this->agent($owner)->jobs,
            static fn(MemoryJob $job): bool => $job->cancelled || ($known[$job->id] ?? 0) !== $job->number,
        );

        return array_values(array_map(
            fn(MemoryJob $job): Delivery => $this->delivery($job, $maxFrameBytes),
            $unknown,
        ));
    }

    /** @param list<string> $frames */
    public function putItems(string $owner, string $id, int $number, int $first, array $frames): ?int
    {
        $job = $this->jobs[$id] ?? null;
        $this->agent($owner);
        if (
            $job === null
            || $job->status !== 'running'
            || $job->owner !== $owner
            || $job->number !== $number
            || $job->cancelled
            || $job->left
        ) {
            return null;
        }
        $job->streamed = $job->streamed || $frames !== [];
        [$items, $next] = $this->items[$id] ?? [[], 0];
        foreach ($frames as $i => $frame) {
            if ($first + $i >= $next) {
                $items[$first + $i] = $frame;
                $next = $first + $i + 1;
            }
        }
        $until = $this->engine->now() + self::ITEMS_KEPT;
        $this->items[$id] = [$items, $next, $until];
        $this->expiring->insert([$until, $id]);
        if ($frames !== [] || $first === 0) {
            $isHeard = $this->notify($job, new MailboxMessage(items: [$id]));
            if (!$isHeard && $job->unheardSince !== null && $this->engine->now() - $job->unheardSince >= 10.0) {
                return null;
            }
            $job->wasHeard = $job->wasHeard || $isHeard || $job->isPrivate();
            $job->unheardSince = $isHeard || !$job->wasHeard ? null : $job->unheardSince ?? $this->engine->now();
        }

        return \count($items);
    }

    /** @return list<string> */
    public function takeItems(string $id, int $offset, int $limit): array
    {
        [$items, $next, $until] = $this->items[$id] ?? [[], 0, 0.0];
        $left = array_filter($items, static fn(int $index): bool => $index >= $offset, \ARRAY_FILTER_USE_KEY);
        if (\count($left) < \count($items)) {
            $this->items[$id] = [$left, $next, $until];
            if (($this->jobs[$id]->status ?? '') === 'running') {
                $this->engine->send($this->jobs[$id]->owner, new MailboxMessage(taken: [$id]));
            }
        }

        $taken = [];
        for ($bytes = 0; $left !== [] && \count($taken) < $limit && $bytes < self::MAX_ANSWER_BYTES;) {
            $taken[] = $item = array_shift($left);
            $bytes += \strlen($item);
        }

        return $taken;
    }

    public function stopTakingItems(string $id): void
    {
        $job = $this->jobs[$id] ?? null;
        if ($job !== null && $job->status === 'running' && !$job->left) {
            $job->left = true;
            $this->engine->send($job->owner, new MailboxMessage(taken: [$id]));
        }
    }

    public function report(string $owner, string $id, int $number, string $frame): void
    {
        $job = $this->jobs[$id] ?? null;
        if ($job !== null && $job->status === 'running' && $job->owner === $owner && $job->number === $number) {
            $this->notify($job, new MailboxMessage(reports: [$id => $frame]));
        }
    }

    public function wasUsed(): bool
    {
        return $this->agents !== [] || array_sum($this->totals) > 0;
    }

    /** @return array<string, int> */
    public function statistics(): array
    {
        $now = $this->engine->now();
        $oldest = $now;
        foreach ([$this->urgent, $this->ready] as $line) {
            $oldest = min($oldest, $this->first($line)->since ?? $now);
        }

        return [
            ...array_diff_key($this->counts, ['' => true]),
            'dead' => \count($this->dead),
            'agents' => \count(array_filter($this->agents, static fn(MemoryAgent $agent): bool => $agent->end > $now)),
            'oldest_ms' => self::milliseconds($now - $oldest),
            ...$this->totals,
        ];
    }

    /** @return array<string, array<string, int|float|string>> */
    public function list(JobStatus $status, int $limit): array
    {
        $known = match ($status) {
            JobStatus::Waiting => array_map(
                static fn(MemoryJob $job): array => ['since' => self::milliseconds($job->since)],
                $this->inLine(),
            ),
            JobStatus::Running => array_map(
                static fn(MemoryJob $job): array => [
                    'owner' => $job->owner,
                    'claim_number' => $job->number,
                    'crashes' => $job->crashes,
                    'failures' => $job->failures,
                    'since' => self::milliseconds($job->since),
                    ...self::postponement($job),
                ],
                array_filter($this->jobs, static fn(MemoryJob $job): bool => $job->status === 'running'),
            ),
            JobStatus::Delayed => array_map(
                static fn(MemoryJob $job): array => [
                    'due' => self::milliseconds($job->due),
                    'crashes' => $job->crashes,
                    'failures' => $job->failures,
                    ...self::postponement($job),
                ],
                $this->inOrderOfDelay(),
            ),
            JobStatus::Dead => array_map(static function (array $dead): array {
                $details = self::deadDetails($dead);
                if (isset($details['reason'])) {
                    $details['reason'] = mb_strcut(explode("\n", (string) $details['reason'], 2)[0], 0, 500, 'UTF-8');
                }

                return $details;
            }, array_reverse($this->dead)),
            JobStatus::Done, JobStatus::Cancelled => [],
        };

        return \array_slice($known, 0, $limit);
    }

    /** @return array<string, array<string, int|float|string>> */
    public function details(JobStatus $status, string $id): array
    {
        if ($this->status($id) !== $status || \in_array($status, [JobStatus::Done, JobStatus::Cancelled], true)) {
            return [];
        }
        $job = $this->jobs[$id] ?? $this->dead[$id][0];
        $details = match ($status) {
            JobStatus::Waiting => [
                'crashes' => $job->crashes,
                'failures' => $job->failures,
                ...self::postponement($job),
            ],
            JobStatus::Dead => self::deadDetails($this->dead[$id]),
            default => $this->list($status, \PHP_INT_MAX)[$id],
        };
        if ($job->status === 'blocked') {
            $details['blocked'] = 1;
        }

        return [$id => $job->key === '' ? $details : [...$details, 'exclusive_key' => $job->key]];
    }

    /** @return array<string, int> */
    private static function postponement(MemoryJob $job): array
    {
        return $job->postponedSince === null ? [] : ['postponed_since' => self::milliseconds($job->postponedSince)];
    }

    /**
     * @param array{MemoryJob, string, float} $dead
     *
     * @return array<string, int|float|string>
     */
    private static function deadDetails(array $dead): array
    {
        /** @var array<string, int|float|string> $reason */
        $reason = $dead[1] === '' ? [] : json_decode($dead[1], true, 8, \JSON_THROW_ON_ERROR);

        return [...$reason, 'died' => self::milliseconds($dead[2])];
    }

    public function status(string $id): ?JobStatus
    {
        $this->expire();

        return match (true) {
            isset($this->jobs[$id]) => JobStatus::tryFrom($this->jobs[$id]->status) ?? JobStatus::Waiting,
            isset($this->dead[$id]) => JobStatus::Dead,
            isset($this->cancelled[$id]) || isset($this->endedAsCancelled[$id]) => JobStatus::Cancelled,
            isset($this->outcomes[$id]) => JobStatus::Done,
            default => null,
        };
    }

    /** @param list<string> $ids */
    public function retryDeadLetters(array $ids): int
    {
        $retried = 0;
        foreach ($ids as $id) {
            $job = $this->dead[$id][0] ?? null;
            if ($job !== null) {
                unset($this->dead[$id], $this->outcomes[$id], $this->items[$id]);
                $this->add(new MemoryJob($id, $job->frame, $job->key, []), 0.0, $this->urgent);
                ++$this->totals['dead_letters_retried_total'];
                ++$retried;
            }
        }
        $this->wake($retried);

        return $retried;
    }

    /** @param list<string> $ids */
    public function delete(array $ids): int
    {
        $deleted = array_intersect_key($this->dead, array_flip($ids));
        $this->dead = array_diff_key($this->dead, $deleted);
        $this->items = array_diff_key($this->items, $deleted);
        $this->outcomes = array_diff_key($this->outcomes, $deleted);

        return \count($deleted);
    }

    public function leave(string $owner): void
    {
        $agent = $this->agents[$owner] ?? null;
        if ($agent !== null) {
            $agent->end = $this->engine->now();
            $agent->idle = 0;
            $agent->left = true;
            $this->ends->insert([$agent->end, $owner]);
            $this->wake($this->reclaimJobs($owner));
        }
    }

    /** @throws LeaseLostException */
    private function agent(string $owner): MemoryAgent
    {
        $agent = $this->agents[$owner] ?? null;

        return $agent === null || $agent->end <= $this->engine->now() ? throw LeaseLostException::of($owner) : $agent;
    }

    /**
     * Adds a job to a line at once, or after a delay in seconds.
     *
     * @param \SplQueue<array{string, int}> $line
     *
     * @return int number of jobs that may be claimed now
     */
    private function add(MemoryJob $job, float $delay, \SplQueue $line): int
    {
        $this->jobs[$job->id] = $job;
        $job->owner = '';
        if ($delay > 0) {
            $this->move($job, 'delayed');
            $job->due = $job->since + $delay;
            $this->delayed->insert([$job->due, $job->ticket, $job->id]);

            return 0;
        }
        $this->move($job, 'waiting');
        $line->enqueue([$job->id, $job->ticket]);

        return 1;
    }

    /** @param ''|'waiting'|'running'|'delayed'|'blocked' $status */
    private function move(MemoryJob $job, string $status): void
    {
        --$this->counts[$job->status];
        ++$this->counts[$status];
        $job->status = $status;
        $job->ticket = ++$this->lastTicket;
        $job->since = $this->engine->now();
    }

    private function remove(MemoryJob $job): void
    {
        $this->move($job, '');
        unset($this->jobs[$job->id]);
    }

    private function end(MemoryJob $job, Settlement $settlement, SettlementKind $kind, float $outcomeRetention): void
    {
        $this->remove($job);
        $until = $job->since + $outcomeRetention;
        $this->outcomes[$job->id] = [$settlement->frame, $until, $job->frame];
        $this->expiring->insert([$until, $job->id]);
        if ($kind === SettlementKind::Cancelled) {
            $this->endedAsCancelled[$job->id] = true;
        }
        if ($kind === SettlementKind::Dead) {
            $this->dead[$job->id] = [$job, $settlement->reason, $job->since];
        }
    }

    /** Drops expired outcomes and items. */
    private function expire(): void
    {
        $now = $this->engine->now();
        while (!$this->expiring->isEmpty() && $this->expiring->top()[0] <= $now) {
            [, $id] = $this->expiring->extract();
            if (($this->outcomes[$id][1] ?? $now + 1) <= $now) {
                unset($this->outcomes[$id], $this->endedAsCancelled[$id]);
            }
            if (($this->cancelled[$id][0] ?? $now + 1) <= $now) {
                unset($this->cancelled[$id]);
            }
            if (($this->items[$id][2] ?? $now + 1) <= $now) {
                unset($this->items[$id]);
            }
        }
    }

    /** @return int number of jobs whose delay is over */
    private function promote(): int
    {
        $promoted = 0;
        while (!$this->delayed->isEmpty()) {
            [$due, $ticket, $id] = $this->delayed->top();
            $job = $this->find($id, $ticket);
            if ($job !== null && $due > $this->engine->now()) {
                break;
            }
            $this->delayed->extract();
            $promoted += $job === null ? 0 : $this->add($job, 0.0, $this->ready);
        }

        return $promoted;
    }

    /** @return int number of claimable jobs whose owner's lease has ended */
    private function reclaimJobs(string $for): int
    {
        $ready = 0;
        $now = $this->engine->now();
        while (!$this->ends->isEmpty() && $this->ends->top()[0] <= $now) {
            [, $owner] = $this->ends->extract();
            $agent = $this->agents[$owner] ?? null;
            if ($agent === null || $agent->end > $now) {
                continue;
            }
            unset($this->agents[$owner]);
            foreach ($agent->jobs as $job) {
                $job->crashes += $agent->left || $job->claim > $agent->begun ? 0 : 1;
                $job->lost = true;
                $ready += $this->add($job, 0.0, $this->urgent) + $this->unlock($job);
                ++$this->totals[$agent->left ? 'released_total' : 'lost_total'];
            }
            if (!$agent->left) {
                $this->engine->send($for, new MailboxMessage(lostAgents: [$owner => \count($agent->jobs)]));
            }
        }

        return $ready;
    }

    /** @return list<Delivery> */
    private function claim(MemoryAgent $agent, int $maxClaims, int $first, int $maxFrameBytes): array
    {
        $deliveries = [];
        foreach ([$this->urgent, $this->ready] as $line) {
            while (\count($deliveries) < $maxClaims && ($job = $this->first($line)) !== null) {
                $line->dequeue();
                if ($job->refusedBy === $agent->name && \count($this->agents) > 1) {
                    $this->add($job, 0.2, $line);

                    continue;
                }
                if ($job->key !== '' && isset($this->keys[$job->key])) {
                    $this->move($job, 'blocked');
                    $this->block($job);

                    continue;
                }
                if ($job->key !== '') {
                    $this->keys[$job->key] = $job->id;
                }
                $job->waited = $this->engine->now() - $job->since;
                $this->move($job, 'running');
                $job->owner = $agent->name;
                $job->claim = $first + \count($deliveries);
                ++$job->number;
                $agent->jobs[$job->id] = $job;
                $deliveries[] = $this->delivery($job, $maxFrameBytes);
            }
        }

        return $deliveries;
    }

    private function block(MemoryJob $job): void
    {
        /** @var \SplQueue<array{string, int}> $line */
        $line = $this->blocked[$job->key] ?? new \SplQueue();
        $this->blocked[$job->key] = $line;
        $line->enqueue([$job->id, $job->ticket]);
    }

    private function delivery(MemoryJob $job, int $maxFrameBytes): Delivery
    {
        $isTooLarge = \strlen($job->frame) > $maxFrameBytes;

        return new Delivery(
            $job->id,
            $job->number,
            $job->crashes,
            $job->failures,
            $job->cancelled,
            $job->lost,
            $job->streamed,
            $isTooLarge ? '' : $job->frame,
            $isTooLarge ? \strlen($job->frame) : 0,
            \in_array($job->refusedBy, ['', $job->owner], true)
                ? min(Delivery::MAX_REFUSALS, $job->refusals)
                : Delivery::MAX_REFUSALS,
            (int) ($this->engine->now() - ($job->postponedSince ?? $this->engine->now())),
            $job->waited,
        );
    }

    /** @return int number of jobs that may be claimed after this one has ended */
    private function unlock(MemoryJob $job): int
    {
        if (($this->keys[$job->key] ?? null) !== $job->id) {
            return 0;
        }
        unset($this->keys[$job->key]);

        return $this->next($job->key);
    }

    /** @return int number of jobs of a free key that may be claimed, 0 or 1 */
    private function next(string $key): int
    {
        $line = $this->blocked[$key] ?? null;
        $job = $line === null ? null : $this->first($line);
        if ($line === null || $job === null) {
            unset($this->blocked[$key]);

            return 0;
        }
        $line->dequeue();

        return $this->add($job, 0.0, $this->urgent);
    }

    /**
     * Returns the first valid entry of a line, and drops the void ones before it.
     *
     * @param \SplQueue<array{string, int}> $line
     */
    private function first(\SplQueue $line): ?MemoryJob
    {
        for (; !$line->isEmpty(); $line->dequeue()) {
            $job = $this->find(...$line->bottom());
            if ($job !== null) {
                return $job;
            }
        }

        return null;
    }

    private function find(string $id, int $ticket): ?MemoryJob
    {
        $job = $this->jobs[$id] ?? null;

        return $job?->ticket === $ticket ? $job : null;
    }

    private function setIdle(MemoryAgent $agent, int $free): void
    {
        if ($agent->idle === 0 && $free > 0) {
            $this->idle->enqueue($agent->name);
        }
        $agent->idle = $free;
    }

    /** Notifies idle owners of N new jobs. */
    private function wake(int $jobs): void
    {
        while ($jobs > 0 && !$this->idle->isEmpty()) {
            $agent = $this->agents[$this->idle->dequeue()] ?? null;
            $free = $agent->idle ?? 0;
            if ($agent !== null && $free > 0) {
                $agent->idle = 0;
                $jobs -= $this->engine->send($agent->name, new MailboxMessage(jobsAvailable: true)) ? $free : 0;
            }
        }
    }

    /** @return bool whether a listener exists */
    private function notify(MemoryJob $job, MailboxMessage $message): bool
    {
        $isHeard = false;
        foreach ($job->mailboxes as $mailbox) {
            $isHeard = $this->engine->send($mailbox, $message) || $isHeard;
        }

        return $isHeard;
    }

    /** @return array<string, MemoryJob> claimable jobs, by id */
    private function inLine(): array
    {
        $jobs = [];
        foreach ([$this->urgent, $this->ready] as $line) {
            foreach ($line as [$id, $ticket]) {
                $job = $this->find($id, $ticket);
                if ($job !== null) {
                    $jobs[$id] = $job;
                }
            }
        }

        return $jobs;
    }

    /** @return array<string, MemoryJob> */
    private function inOrderOfDelay(): array
    {
        $jobs = array_filter($this->jobs, static fn(MemoryJob $job): bool => $job->status === 'delayed');
        uasort($jobs, static fn(MemoryJob $one, MemoryJob $other): int => $one->due <=> $other->due);

        return $jobs;
    }

    private static function milliseconds(float $seconds): int
    {
        return (int) ($seconds * 1000);
    }
}
