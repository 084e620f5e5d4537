<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\Future;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Backoff;
use Spindle\Internal\Clock;
use Spindle\LauncherException;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Delivery;
use Spindle\Remote\Keys;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\Letter;
use Spindle\Remote\Settlement;
use Spindle\Remote\TamperedFrameException;
use Spindle\Worker\WorkerCrashedException;

/**
 * An agent's work under one lease and one owner name. Renews the lease, claims jobs, runs them and settles them. It
 * ends when the agent is asked to stop, or when the lease is lost. A lost lease ends its jobs.
 */
final class AgentLease
{
    /** Claim as many jobs as finish in CLAIM_SECONDS. The pool gets those of POOL_SECONDS. At least one per worker. */
    private const CLAIM_SECONDS = 0.1;
    private const POOL_SECONDS = 0.02;

    private const MAX_CLAIMED_JOBS = 2000;

    /** Seconds that are added to delays, because the engine counts milliseconds. */
    private const ROUNDING_SECONDS = 0.002;

    /** Largest size of outcomes in one request in bytes; a single outcome may be larger. */
    private const MAX_REQUEST_BYTES = 4 << 20;

    /** Claims without any verifiable job before the agent stops, and seconds of the first pause after such a claim. */
    private const MAX_REFUSALS = 5;
    private const REFUSAL_PAUSE_SECONDS = 1.0;

    /** Renewals between two checks for jobs that no agent can find. */
    private const BEATS_PER_REPAIR = 5;

    private readonly string $owner;
    private readonly JobSettlement $verdicts;
    private readonly Backoff $backoff;

    /** @var array<string, ClaimedJob> all claimed jobs, by id */
    private array $jobs = [];

    /** @var array<string, ClaimedJob> claimed jobs that the pool does not have yet, by id */
    private array $waiting = [];

    /** @var array<string, int> claim numbers of withdrawn jobs that have not arrived, by job id; kept for two beats */
    private array $unwanted = [];

    /** @var array<string, int> entries of $unwanted that existed at the last beat */
    private array $unwantedBefore = [];

    /** @var list<Settlement> */
    private array $settlements = [];

    /** Bytes of settlements that the engine has not confirmed, and bytes of the claimed jobs. */
    private int $settlementBytes = 0;
    private int $jobBytes = 0;

    private int $capacity;
    private bool $exchanging = false;
    private bool $asked = false;
    private bool $draining = false;
    private bool $renewing = false;

    /** Time until which the agent waits for an engine that is away; shortened when running jobs are given back. */
    private float $patientUntil = \INF;

    /** Whether a job was verified, which shows that the keys are those of the queue. */
    private bool $hasVerified = false;

    /** Claims in a row without a verifiable job, the end of the pause after them, and the reason for the stop. */
    private int $refusals = 0;
    private float $pausedUntil = 0.0;
    private ?TamperedFrameException $refusal = null;

    private ?string $stopTimer = null;

    /** Timer for the end of the next delay, and the time when it expires. */
    private ?string $due = null;
    private float $dueAt = 0.0;

    /**
     * Jobs are numbered in the order of their claims. These are the last reserved number, the last one that the pool
     * has, and the last one that the broker knows to have begun.
     */
    private int $lastNumber = 0;
    private int $lastHanded = 0;
    private int $lastTold = 0;

    /** Whether an answer or a letter may be lost, so that claimed or withdrawn jobs are unknown here. */
    private bool $doubts = false;
    private ?\Throwable $failure = null;

    /** When the lease ends unless it is renewed, in seconds of {@see Clock::now()}. */
    private float $leaseEnds = 0.0;

    private int $settled = 0;
    private int $beats = 0;

    /** @var Suspension<null>|null */
    private ?Suspension $server = null;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly int $workers,
        private readonly JobRunner $workshop,
        Keys $keys,
        private readonly AgentOptions $options,
        private readonly int $maxResult,
        private readonly LoggerInterface $logger,
    ) {
        $host = (string) preg_replace('/[^A-Za-z0-9.-]+/', '-', (string) gethostname());
        // host names are not unique
        $this->owner = substr($host, 0, 40) . ':' . getmypid() . ':' . bin2hex(random_bytes(6));
        $this->verdicts = new JobSettlement($keys, $queue, $this->owner, $maxResult);
        $this->backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $this->capacity = $workers;
    }

    /** Returns the owner name when none of its jobs runs any more; otherwise null. */
    public function ended(): ?string
    {
        return $this->jobs === [] ? $this->owner : null;
    }

    /** Returns whether the engine has answered a claim. */
    public function hasServed(): bool
    {
        return $this->lastTold > 0;
    }

    public function inHand(): int
    {
        return \count($this->jobs);
    }

    /** @throws \Spindle\Remote\BrokerException */
    public function begin(): void
    {
        $tier = $this->broker->tier();
        $this->renew(true);
        $this->logger->info(
            'Serves the queue {queue} as {owner}; the tier is {tier}',
            ['queue' => $this->queue, 'owner' => $this->owner, 'tier' => $tier->value],
        );
    }

    /**
     * @throws LeaseLostException
     * @throws \Spindle\Remote\BrokerException
     */
    public function serve(Cancellation $stop, Cancellation $end): void
    {
        $close = $this->broker->openMailbox($this->owner, $this->read(...), $this->doubt(...));
        $beat = EventLoop::repeat($this->options->beat, $this->beat(...));
        $subscription = $stop->subscribe($this->drain(...));
        $ending = $end->subscribe($this->giveBack(...));
        $this->workshop->onReport = $this->report(...);
        try {
            $this->poke();
            $this->server = EventLoop::getSuspension();
            $this->server->suspend();
            $failure = $this->failure;
            if ($failure !== null) {
                $this->awaitEnd();

                throw $failure;
            }
            $this->broker->leave($this->queue, $this->owner);
            if ($this->refusal !== null) {
                throw TamperedFrameException::never($this->queue, $this->refusal);
            }
        } finally {
            $stop->unsubscribe($subscription);
            $end->unsubscribe($ending);
            if ($this->stopTimer !== null) {
                EventLoop::cancel($this->stopTimer);
            }
            EventLoop::cancel($beat);
            $this->stopDue();
            $close();
            $this->release($this->settlementBytes);
        }
    }

    private function read(Letter $letter): void
    {
        if ($letter->work) {
            $this->poke();
        }
        if ($letter->due !== null) {
            $this->pokeIn($letter->due);
        }
        foreach ($letter->unwanted as $id => $number) {
            $this->cancel($id, $number);
        }
        foreach ($letter->taken as $id) {
            ($this->jobs[$id] ?? null)?->tell();
        }
    }

    /** Ends a withdrawn job. */
    private function cancel(string $id, int $number): void
    {
        $job = $this->jobs[$id] ?? null;
        if ($job === null) {
            $this->unwanted[$id] = $number; // the letter has overtaken the answer with the job
        } elseif ($job->delivery->number === $number) {
            isset($this->waiting[$id])
                ? $this->settle($job, $this->verdicts->cancelled($job->delivery))
                : $job->cancel();
        }
    }

    /** Asks the broker for the owner's jobs after the mailbox was opened, because letters may have been lost before. */
    private function doubt(): void
    {
        $this->doubts = true;
        $this->poke();
    }

    /** Sends a task's report to the mailboxes, or starts the time limit of a task that has begun. */
    private function report(mixed $report): void
    {
        if (!\is_array($report)) {
            return;
        }
        $id = $report[0] ?? null;
        $job = \is_string($id) ? $this->jobs[$id] ?? $this->jobs["#{$id}"] ?? null : null;
        if ($job === null) {
            return;
        }
        $bytes = $report[1] ?? null;
        \is_string($bytes)
            ? $this->broker->report(
                $this->queue,
                $this->owner,
                $job->delivery->id,
                $job->delivery->number,
                $this->verdicts->report($job->delivery, $bytes),
            )
            : $job->started();
    }

    private function drain(): void
    {
        $this->draining = true;
        foreach ($this->waiting as $job) {
            $this->settle($job, $this->verdicts->released($job->delivery));
        }
        if ($this->options->stopTimeout !== null) {
            $this->stopTimer = EventLoop::unreference(EventLoop::delay(
                $this->options->stopTimeout,
                $this->giveBack(...),
            ));
        }
        $this->poke();
    }

    /** Ends the running jobs and gives them back. That counts neither as an attempt nor as a crash. */
    private function giveBack(): void
    {
        if (!$this->draining) {
            return;
        }
        $this->patientUntil = min($this->patientUntil, Clock::now() + $this->options->margin);
        $this->logger->warning('{count} jobs that run are ended and given back', ['count' => \count($this->jobs)]);
        foreach ($this->jobs as $job) {
            $job->giveBack();
        }
    }

    private function beat(): void
    {
        if ($this->isLate()) {
            $this->abandon(LeaseLostException::of($this->owner));

            return;
        }
        if ($this->renewing) {
            return;
        }
        $this->unwanted = array_diff_key($this->unwanted, $this->unwantedBefore);
        $this->unwantedBefore = $this->unwanted;
        $rate = $this->settled / $this->options->beat;
        $this->settled = 0;
        $this->capacity = (int) max($this->workers, min(self::MAX_CLAIMED_JOBS, $rate * self::CLAIM_SECONDS));
        $running = \count($this->jobs) - \count($this->waiting);
        // other agents may be free for them
        foreach (\array_slice($this->waiting, max(0, $this->capacity - $running), null, true) as $job) {
            $this->settle($job, $this->verdicts->released($job->delivery));
        }
        $this->renewing = true;
        try {
            $this->renewAgain();
            if (++$this->beats % self::BEATS_PER_REPAIR === 0) {
                $this->doubts = true;
                $this->workshop->queue = $this->broker->figures($this->queue);
                $repaired = $this->broker->repair($this->queue);
                if ($repaired > 0) {
                    $this->logger->error(
                        '{count} jobs were there that nobody could find, and are found: has somebody changed the queue by hand?',
                        ['count' => $repaired],
                    );
                }
            }
            $this->poke();
        } catch (BrokerUnavailableException $failure) {
            $this->logger->warning($failure->getMessage());
        } catch (\Throwable $failure) {
            $this->abandon($failure);
        } finally {
            $this->renewing = false;
        }
    }

    /**
     * Renews the lease. After a failure it retries without waiting for the next beat.
     *
     * @throws LeaseLostException
     * @throws \Spindle\Remote\BrokerException
     */
    private function renewAgain(): void
    {
        for ($failures = 1; $this->server !== null; ++$failures) {
            try {
                $this->renew(false);

                return;
            } catch (BrokerUnavailableException $failure) {
                $this->logger->warning('The lease was not renewed: {reason}', ['reason' => $failure->getMessage()]);
            }
            \Amp\delay($this->backoff->after($failures));
        }
    }

    private function isLate(): bool
    {
        return Clock::now() > $this->leaseEnds - $this->options->margin;
    }

    private function renew(bool $joins): void
    {
        $asked = Clock::now();
        $due = $this->broker->renew(
            $this->queue,
            $this->owner,
            $this->options->lease,
            $joins,
            json_encode(['workers' => $this->workers, 'in_hand' => \count($this->jobs)], \JSON_THROW_ON_ERROR),
            $this->options->maxDead,
            $this->options->deadRetention,
        );
        $this->leaseEnds = $asked + $this->options->lease;
        if ($this->failure === null) {
            $this->workshop->permit($this->leaseEnds - $this->options->margin / 2);
        }
        if ($due !== null && $due < $this->options->beat) {
            $this->pokeIn($due);
        }
    }

    /** Asks for jobs again in $seconds, when the delay of a job is over. One timer waits for the earliest of them. */
    private function pokeIn(float $seconds): void
    {
        $time = Clock::now() + $seconds + self::ROUNDING_SECONDS;
        if ($this->due !== null && $this->dueAt <= $time) {
            return;
        }
        $this->stopDue();
        $this->dueAt = $time;
        $this->due = EventLoop::unreference(EventLoop::delay($seconds + self::ROUNDING_SECONDS, function (): void {
            $this->due = null;
            $this->poke();
        }));
    }

    private function stopDue(): void
    {
        if ($this->due !== null) {
            EventLoop::cancel($this->due);
            $this->due = null;
        }
    }

    /** Starts an exchange, because there may be something to settle or to claim. */
    private function poke(): void
    {
        $this->asked = true;
        if (!$this->exchanging && $this->failure === null) {
            $this->exchanging = true;
            EventLoop::queue($this->exchange(...));
        }
    }

    /** Settles finished jobs and claims others. Only one request is pending, so that later settlements are batched. */
    private function exchange(): void
    {
        $failures = 0;
        try {
            while ($this->failure === null && $this->asked) {
                $this->asked = false;
                $settlements = [];
                try {
                    if ($this->doubts) {
                        $this->asked = true;
                        $this->doubts = false;
                        $this->takeHeld();

                        continue; // unless the lease was lost while waiting
                    }
                    $settlements = $this->someSettlements();
                    $want = $this->mayClaim() ? max(0, $this->capacity - \count($this->jobs)) : 0;
                    $begun = $this->mayHaveBegun();
                    if ($settlements === [] && $want === 0 && $begun === $this->lastTold) {
                        break;
                    }
                    $first = $this->lastNumber + 1;
                    $this->lastNumber += $want;
                    $claim = $this->broker->settle(
                        $this->queue,
                        $this->owner,
                        $settlements,
                        $want,
                        $this->options->retention,
                        $first,
                        $begun === $this->lastTold ? null : $begun,
                    );
                    $this->lastTold = $begun;
                } catch (BrokerUnavailableException $failure) {
                    array_unshift($this->settlements, ...$settlements);
                    $this->recover($failure, ++$failures);

                    continue;
                }
                $failures = 0;
                $this->release(array_sum(array_map(
                    static fn(Settlement $settlement): int => \strlen($settlement->frame),
                    $settlements,
                )));
                $this->settled += \count($settlements);
                $this->workshop->counters['stale_total'] += \count($claim->stale);
                $ranOut = $this->waiting === [];
                $this->take($claim->deliveries, $first);
                if ($want > 0 && \count($claim->deliveries) === $want) {
                    $this->asked = true;
                    if ($ranOut && \count($settlements) >= $this->workers) {
                        // jobs finish faster than the engine answers: claim more at once
                        $this->capacity = min(self::MAX_CLAIMED_JOBS, $this->capacity + $this->workers);
                    }
                }
            }
        } catch (\Throwable $failure) {
            $this->abandon($failure);
        } finally {
            $this->exchanging = false;
        }
        if ($this->draining && $this->jobs === [] && $this->settlements === []) {
            $this->end();
        }
    }

    private function mayClaim(): bool
    {
        return !$this->draining
            && $this->jobBytes < $this->workshop->budget->bytes
            && Clock::now() >= $this->pausedUntil;
    }

    /** Returns the number of the last claim that may begin before the next request: the pool has it, or room for it. */
    private function mayHaveBegun(): int
    {
        return $this->waiting === []
            ? max($this->lastHanded, $this->lastNumber + $this->depth() - \count($this->jobs))
            : $this->lastHanded;
    }

    /** Returns the largest number of jobs in the pool. */
    private function depth(): int
    {
        return max($this->workers, (int) ($this->capacity * self::POOL_SECONDS / self::CLAIM_SECONDS));
    }

    /** @return list<Settlement> as many as one request may have; the others stay for the next */
    private function someSettlements(): array
    {
        $size = 0;
        foreach ($this->settlements as $i => $settlement) {
            $size += \strlen($settlement->frame);
            if ($size > self::MAX_REQUEST_BYTES && $i > 0) {
                $this->asked = true;

                return array_splice($this->settlements, 0, $i);
            }
        }
        [$settlements, $this->settlements] = [$this->settlements, []];

        return $settlements;
    }

    /**
     * Recovers from a request without an answer: asks for the jobs that the answer may have given. Otherwise no agent
     * would run them as long as the lease is renewed.
     *
     * @throws BrokerUnavailableException
     */
    private function recover(BrokerUnavailableException $failure, int $failures): void
    {
        if (Clock::now() > $this->patientUntil) {
            throw $failure;
        }
        $this->logger->warning($failure->getMessage());
        \Amp\delay($this->backoff->after($failures));
        $this->asked = true;
        try {
            $this->takeHeld();
        } catch (BrokerUnavailableException $again) {
            if ($this->failure === null) {
                $this->recover($again, $failures + 1);
            }
        }
    }

    /** Takes jobs of lost answers, and ends withdrawn ones. Must not run while the answer to a claim may arrive. */
    private function takeHeld(): void
    {
        $known = array_column($this->settlements, 'number', 'id');
        foreach ($this->jobs as $id => $job) {
            $known[$id] = $job->delivery->number; // the later claim, when an earlier one is not settled yet
        }
        $deliveries = [];
        foreach ($this->broker->held($this->queue, $this->owner, $known) as $delivery) {
            if (($known[$delivery->id] ?? 0) === $delivery->number) {
                $this->cancel($delivery->id, $delivery->number);
            } else {
                $deliveries[] = $delivery;
            }
        }
        $this->lastHanded = $this->lastNumber; // the numbers of these jobs are not known, so all may have begun
        $this->take($deliveries, 0);
    }

    /**
     * @param list<Delivery> $deliveries
     * @param int            $first      number of the first claim
     */
    private function take(array $deliveries, int $first): void
    {
        if ($this->failure !== null) {
            return; // other agents may claim them soon
        }
        $refusals = [];
        foreach ($deliveries as $i => $delivery) {
            try {
                $job = $this->verdicts->open($delivery, $first + $i);
                $this->hasVerified = true;
            } catch (TamperedFrameException $refused) {
                $this->logger->error($refused->getMessage());
                $refusals[] = [$delivery, $refused];

                continue;
            }
            $verdict = match (true) {
                ($this->unwanted[$delivery->id] ?? 0) === $delivery->number => $this->verdicts->cancelled($delivery),
                $this->draining => $this->verdicts->released($delivery),
                default => $this->verdicts->beforehand($job),
            };
            if ($verdict !== null) {
                $this->say($verdict);
            } else {
                $this->jobs[$delivery->id] = $this->waiting[$delivery->id] = $job;
                $this->jobBytes += \strlen($delivery->frame);
            }
        }
        $this->refuse($refusals);
        $this->hand();
    }

    /**
     * Gives back jobs that can't be verified. An agent that has never verified a job may have a wrong key. It then
     * releases the jobs instead of refusing them, claims less and less often, and finally stops.
     *
     * @param list<array{Delivery, TamperedFrameException}> $refusals
     */
    private function refuse(array $refusals): void
    {
        $pause = self::REFUSAL_PAUSE_SECONDS * 2 ** $this->refusals;
        foreach ($refusals as [$delivery, $refused]) { // delayed, so that the next claim gets other jobs
            $this->say(
                $this->hasVerified
                    ? $this->verdicts->refused($delivery, $refused)
                    : $this->verdicts->released($delivery, 2 * $pause),
            );
        }
        if ($refusals === [] || $this->hasVerified || $this->draining) {
            return;
        }
        if (++$this->refusals >= self::MAX_REFUSALS) {
            $this->refusal = $refusals[0][1];
            $this->drain();

            return;
        }
        $this->logger->error(
            'None of the jobs that were claimed could be verified: no more are claimed for {pause} s. Is the key that signs them in the key file?',
            ['pause' => $pause],
        );
        $this->pausedUntil = Clock::now() + $pause;
        EventLoop::unreference(EventLoop::delay($pause, $this->poke(...)));
    }

    /** Gives the pool the jobs that it can run soon, unless the lease is nearly over, such as after SIGSTOP. */
    private function hand(): void
    {
        if ($this->isLate() || ($this->settlementBytes > 0 && $this->workshop->budget->isFull())) {
            return; // the next beat abandons the lease, or this is called again when the engine has accepted results
        }
        $depth = $this->depth();
        foreach ($this->waiting as $id => $job) {
            if (\count($this->jobs) - \count($this->waiting) >= $depth) {
                return;
            }
            unset($this->waiting[$id]);
            $this->lastHanded = max($this->lastHanded, $job->number);
            try {
                $run = $this->start($job);
            } catch (\Throwable $failure) { // the pool can't be created, or does not accept the job
                $this->failed($job, $failure);

                return;
            }
            $run->catch(fn(\Throwable $failure) => $this->failed($job, $failure))->ignore();
        }
    }

    /**
     * @return Future<mixed>
     *
     * @throws \Throwable
     */
    private function start(ClaimedJob $job): Future
    {
        return $job->body->isCommand()
            ? \Amp\async(fn() => $this->ran($job, $job->body->asCommand()->runOn($this->workshop->commands(), $job)))
            : $this->workshop
            ->pool()
            ->submit($job->body->task($job->attempt(), $job->delivery->id, $this->maxResult), $job)
            ->map(fn(mixed $outcome) => $this->returned($job, $outcome));
    }

    private function ran(ClaimedJob $job, CommandResult $result): void
    {
        $size = min($this->maxResult, PortableCommand::outputSize($result));
        $this->workshop->budget->await($size);
        $this->settle($job, $this->verdicts->ran($job, $result));
        $this->workshop->budget->release($size);
    }

    private function returned(ClaimedJob $job, mixed $outcome): void
    {
        if ($outcome instanceof \Generator) {
            $outlet = new ItemStore(
                $outcome,
                $this->broker,
                $this->queue,
                $this->owner,
                $job,
                $this->verdicts,
                $this->options->retention,
                $this->workshop->budget,
            );
            EventLoop::queue(function () use ($job, $outlet): void {
                try {
                    $this->settle($job, $this->verdicts->returned($job, $outlet->send()));
                } catch (\Throwable $failure) {
                    $this->failed($job, $failure);
                }
            });

            return;
        }
        $this->settle($job, $this->verdicts->returned($job, \is_string($outcome) ? $outcome : ''));
    }

    private function failed(ClaimedJob $job, \Throwable $failure): void
    {
        if ($this->isLate()) { // the process was stopped, so the job was ended for the lease and did not crash
            $this->abandon(LeaseLostException::of($this->owner));
            unset($this->jobs[$job->delivery->id]);

            return;
        }
        $this->workshop->counters['crashed_total'] += (int) (
            $failure instanceof WorkerCrashedException
            || $failure instanceof LauncherException
        );
        $verdict = $this->verdicts->failed($job, $failure);
        if ($verdict !== null) {
            $this->settle($job, $verdict);
        } else {
            $this->settle($job, $this->verdicts->released($job->delivery));
            $this->abandon($failure); // no worker can be started here
        }
    }

    private function settle(ClaimedJob $job, Settlement $settlement): void
    {
        $job->ended();
        $this->jobBytes -= isset($this->jobs[$job->delivery->id]) ? \strlen($job->delivery->frame) : 0;
        unset($this->jobs[$job->delivery->id], $this->waiting[$job->delivery->id]);
        $this->say($settlement);
        $this->hand();
    }

    private function say(Settlement $settlement): void
    {
        ++$this->workshop->counters[$settlement->kind->counter()];
        $this->settlements[] = $settlement;
        $this->settlementBytes += \strlen($settlement->frame);
        $this->workshop->budget->occupy(\strlen($settlement->frame));
        $this->poke();
    }

    /** Frees $bytes of the result budget, because the engine has those results or they are not needed any more. */
    private function release(int $bytes): void
    {
        $this->settlementBytes -= $bytes;
        $this->workshop->budget->release($bytes);
    }

    /** Ends the running jobs of a lost lease, before another agent runs them. */
    private function abandon(\Throwable $failure): void
    {
        $this->failure ??= $failure;
        $this->jobs = array_diff_key($this->jobs, $this->waiting);
        $this->waiting = [];
        foreach ($this->jobs as $job) {
            $job->cancel();
        }
        $this->end();
    }

    /** Waits until none of the jobs runs any more, at most for the margin. */
    private function awaitEnd(): void
    {
        for ($end = Clock::now() + $this->options->margin; $this->jobs !== [] && Clock::now() < $end;) {
            \Amp\delay(0.02);
        }
    }

    private function end(): void
    {
        $server = $this->server;
        $this->server = null;
        $server?->resume();
    }
}
