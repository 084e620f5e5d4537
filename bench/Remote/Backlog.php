<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Support\Rounds;
use Spindle\Remote\Delivery;
use Spindle\Remote\Durability;
use Spindle\Remote\Job;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;

/** Claims from a queue that no agent serves. */
final class Backlog
{
    /** Jobs in the short queue. */
    public const SHORT_QUEUE_JOBS = 1_000;

    /** Measured claims, and warm-up claims before them. */
    private const MEASURED_CLAIMS = 1_000;
    private const WARM_UP_CLAIMS = 50;

    /** Jobs per claim. */
    public const JOBS_PER_CLAIM = 16;

    /** Bytes of a job and of its outcome, as for a no-op task. */
    private const FRAME = 168;
    private const OUTCOME = 64;

    /** Names that are as long as those of a script, because names need memory too. */
    private const MAILBOX = 'nobody-reads-these';
    private const ID = self::MAILBOX . '-%x';

    /** Jobs per submission that fills the queue, and jobs between two progress messages. */
    private const BATCH_JOBS = 2_000;
    private const JOBS_PER_PROGRESS = 100_000;

    /** Limit of the queue, more than any benchmark needs. */
    private const MAX_JOBS = 1 << 40;

    /** Seconds. */
    private const LEASE = 60.0;
    private const RETENTION = 10.0;
    private const POLL_INTERVAL = 0.3;

    private int $last = 0;

    private string $owner = '';

    /** @var list<float> duration of this round's claims in milliseconds */
    private array $times = [];

    private int $wrong = 0;

    /** Bytes in the engine per job. */
    private readonly float $bytes;

    private function __construct(private readonly Rig $rig, int $jobs)
    {
        $before = $this->rig->info('memory', 'used_memory');
        for ($left = $jobs; $left > 0; $left -= self::BATCH_JOBS) {
            if (($jobs - $left) % self::JOBS_PER_PROGRESS === 0) {
                Rounds::say(\sprintf('%s of %s jobs are queued', number_format($jobs - $left), number_format($jobs)));
            }
            $this->submit(min(self::BATCH_JOBS, $left));
        }
        $this->bytes = ($this->rig->info('memory', 'used_memory') - $before) / $jobs;
        do { // the engine checks ten times per second whether to rewrite its file; claims are measured after that
            \Amp\delay(self::POLL_INTERVAL);
        } while ($this->rig->info(
            'persistence',
            'aof_rewrite_in_progress',
        ) + $this->rig->info('persistence', 'aof_rewrite_scheduled') > 0);
        Rounds::say('');
    }

    /** Creates a queue in its own engine. */
    public static function of(int $jobs): self
    {
        return new self(Rig::start(Durability::Fast), $jobs);
    }

    /**
     * Claims from each queue in turn, repeatedly, so that other activity on the machine affects all of them.
     *
     * @param list<self> $queues
     *
     * @return list<Outcome> one per queue
     */
    public static function claims(array $queues): array
    {
        foreach ($queues as $queue) {
            $queue->begin();
        }
        for ($i = -self::WARM_UP_CLAIMS; $i < self::MEASURED_CLAIMS; ++$i) {
            foreach ($queues as $queue) {
                $milliseconds = $queue->claim();
                if ($i >= 0) {
                    $queue->times[] = $milliseconds;
                }
            }
        }

        return array_map(static fn(self $queue): Outcome => $queue->end(), $queues);
    }

    private function begin(): void
    {
        [$this->times, $this->wrong] = [[], 0];
        $this->owner = 'bench:' . bin2hex(random_bytes(6));
        $this->rig->broker->renewLease(Rig::QUEUE, $this->owner, self::LEASE, true, '{}');
    }

    /**
     * Claims jobs. Then, outside the measured time, settles them and submits others, so that the queue keeps its
     * length.
     *
     * @return float milliseconds
     */
    private function claim(): float
    {
        $broker = $this->rig->broker;
        $begin = hrtime(true);
        $claim = $broker->settleAndClaim(Rig::QUEUE, $this->owner, [], self::JOBS_PER_CLAIM, self::RETENTION);
        $milliseconds = (hrtime(true) - $begin) / 1e6;
        $done = array_map(
            static fn(Delivery $job): Settlement
                => new Settlement(
                    $job->id,
                    $job->claimNumber,
                    SettlementKind::Done,
                    frame: str_repeat('x', self::OUTCOME),
                ),
            $claim->deliveries,
        );
        $settled = $broker->settleAndClaim(Rig::QUEUE, $this->owner, $done, 0, self::RETENTION);
        $this->wrong += \count($done) === self::JOBS_PER_CLAIM && $settled->stale === [] ? 0 : 1;
        $this->submit(self::JOBS_PER_CLAIM);

        return $milliseconds;
    }

    private function end(): Outcome
    {
        $this->rig->broker->releaseLease(Rig::QUEUE, $this->owner);
        $figures = Times::of($this->times)->figures();

        return new Outcome(
            $figures['p99'],
            $figures + ['bytes' => $this->bytes, 'memory' => $this->rig->info('memory', 'used_memory')],
            $this->wrong === 0
                ? []
                : ["{$this->wrong} claims did not get " . self::JOBS_PER_CLAIM . ' jobs, or could not settle them'],
        );
    }

    private function submit(int $count): void
    {
        $jobs = [];
        for ($i = 0; $i < $count; ++$i) {
            $jobs[] = new Job(\sprintf(self::ID, ++$this->last), str_repeat('x', self::FRAME));
        }
        if ($this->rig->broker->submit(Rig::QUEUE, $jobs, self::MAX_JOBS, self::MAILBOX, false)->accepted !== $count) {
            throw new \RuntimeException('the queue did not accept all jobs');
        }
    }
}
