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
 * An agent's work under one lease, and one name: what it claims, what becomes of it, and that the lease is renewed. It ends when the agent is told
 * to stop, or when the lease is lost; what it had then runs no more.
 */
final class Tenure
{
    /** So many jobs are claimed as are done in this time, in seconds, and so many handed to the pool; but one for each worker at least. */
    private const CLAIMED = 0.1;
    private const HANDED = 0.02;

    private const MOST = 2000;

    /** The engine counts milliseconds, in seconds. */
    private const ROUNDING = 0.002;

    /** Bytes of outcomes in one question; a single one may have more. */
    private const QUESTION = 4 << 20;

    /** So often it is given jobs of which it can verify none, before it stops; and seconds of the first pause after that. */
    private const REFUSALS = 5;
    private const REFUSED_PAUSE = 1.0;

    /** Every so many renewals it looks whether jobs have got lost. */
    private const AUDIT = 5;

    private readonly string $owner;
    private readonly Verdicts $verdicts;
    private readonly Backoff $backoff;

    /** @var array<string, Assignment> what it has and what waits in it, by id */
    private array $jobs = [];

    /** @var array<string, Assignment> those that the pool does not have yet */
    private array $waiting = [];

    /** @var array<string, int> numbers of claims that nobody wants and that have not come yet, by the ids of jobs; those of now and of the last beat */
    private array $unwanted = [];

    /** @var array<string, int> those of the last beat */
    private array $unwantedBefore = [];

    /** @var list<Settlement> */
    private array $settlements = [];

    /** Bytes of those, and of those that the engine is asked to take in; and bytes of the jobs that it has. */
    private int $settlementBytes = 0;
    private int $jobBytes = 0;

    private int $capacity;
    private bool $exchanging = false;
    private bool $asked = false;
    private bool $draining = false;
    private bool $renewing = false;

    /** Until when an engine that is away is waited for, in seconds of a clock that is never set: not for long once the time to finish is over. */
    private float $patientUntil = \INF;

    /** Whether a job was verified, so that the keys here are those of the queue. */
    private bool $hasVerified = false;

    /** How often in a row none of the jobs that were claimed could be verified; until when nothing is claimed for that; why it stops. */
    private int $refusals = 0;
    private float $pausedUntil = 0.0;
    private ?TamperedFrameException $refusal = null;

    private ?string $stopTimer = null;

    /** The timer that waits for the next delay to be over, and when it is. */
    private ?string $due = null;
    private float $dueAt = 0.0;

    /** Jobs are numbered in the order of their claims: the last number that was given, the last one that a pool has, and what the broker was told of that. */
    private int $lastNumber = 0;
    private int $lastHanded = 0;
    private int $lastTold = 0;

    /** Whether it may have jobs of which it does not know, or that nobody wants. */
    private bool $doubts = false;
    private ?\Throwable $failure = null;

    /** When the lease ends unless it is renewed, in seconds of a clock that is never set. */
    private float $leaseEnds = 0.0;

    private int $settled = 0;
    private int $beats = 0;

    /** @var Suspension<null>|null */
    private ?Suspension $server = null;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly int $workers,
        private readonly Workshop $workshop,
        Keys $keys,
        private readonly AgentOptions $options,
        private readonly int $maxResult,
        private readonly LoggerInterface $logger,
    ) {
        $host = (string) preg_replace('/[^A-Za-z0-9.-]+/', '-', (string) gethostname());
        $this->owner = substr($host, 0, 40) . ':' . getmypid() . ':' . bin2hex(random_bytes(6)); // host names are not unique
        $this->verdicts = new Verdicts($keys, $queue, $this->owner, $maxResult);
        $this->backoff = new Backoff(0.05, 2.0, 2.0, 0.5);
        $this->capacity = $workers;
    }

    /** Its name, when nothing of what it had runs any more. */
    public function ended(): ?string
    {
        return $this->jobs === [] ? $this->owner : null;
    }

    /** Whether the engine has given it jobs, or would have. */
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
        $this->logger->info('Serves the queue {queue} as {owner}; the tier is {tier}', ['queue' => $this->queue, 'owner' => $this->owner, 'tier' => $tier->value]);
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

    /** Nobody wants a job any more. */
    private function cancel(string $id, int $number): void
    {
        $job = $this->jobs[$id] ?? null;
        if ($job === null) {
            $this->unwanted[$id] = $number; // the letter is faster than the answer that gives the job
        } elseif ($job->delivery->number === $number) {
            isset($this->waiting[$id]) ? $this->settle($job, $this->verdicts->cancelled($job->delivery)) : $job->cancel();
        }
    }

    /** The mailbox is open, for the first time or again: letters may have been lost. */
    private function doubt(): void
    {
        $this->doubts = true;
        $this->poke();
    }

    /** What a task tells, or that it runs now. */
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
            ? $this->broker->report($this->queue, $this->owner, $job->delivery->id, $job->delivery->number, $this->verdicts->report($job->delivery, $bytes))
            : $job->started();
    }

    private function drain(): void
    {
        $this->draining = true;
        foreach ($this->waiting as $job) {
            $this->settle($job, $this->verdicts->released($job->delivery));
        }
        if ($this->options->stopTimeout !== null) {
            $this->stopTimer = EventLoop::unreference(EventLoop::delay($this->options->stopTimeout, $this->giveBack(...)));
        }
        $this->poke();
    }

    /** Ends what runs, for another agent to run it: that is no try of it, and no crash. */
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
        $this->capacity = (int) max($this->workers, min(self::MOST, $rate * self::CLAIMED));
        $running = \count($this->jobs) - \count($this->waiting);
        foreach (\array_slice($this->waiting, max(0, $this->capacity - $running), null, true) as $job) { // others may be free for them
            $this->settle($job, $this->verdicts->released($job->delivery));
        }
        $this->renewing = true;
        try {
            $this->renewAgain();
            if (++$this->beats % self::AUDIT === 0) {
                $this->doubts = true;
                $this->workshop->queue = $this->broker->figures($this->queue);
                $repaired = $this->broker->repair($this->queue);
                if ($repaired > 0) {
                    $this->logger->error('{count} jobs were there that nobody could find, and are found: has somebody changed the queue by hand?', ['count' => $repaired]);
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
     * Renews the lease, without waiting for the next beat when a connection has failed.
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
        $due = $this->broker->renew($this->queue, $this->owner, $this->options->lease, $joins, json_encode(['workers' => $this->workers, 'in_hand' => \count($this->jobs)], \JSON_THROW_ON_ERROR), $this->options->maxDead, $this->options->deadRetention);
        $this->leaseEnds = $asked + $this->options->lease;
        if ($this->failure === null) {
            $this->workshop->permit($this->leaseEnds - $this->options->margin / 2);
        }
        if ($due !== null && $due < $this->options->beat) {
            $this->pokeIn($due);
        }
    }

    /** The delay of a job is over in so many seconds. One timer waits for the next of them. */
    private function pokeIn(float $seconds): void
    {
        $time = Clock::now() + $seconds + self::ROUNDING;
        if ($this->due !== null && $this->dueAt <= $time) {
            return;
        }
        $this->stopDue();
        $this->dueAt = $time;
        $this->due = EventLoop::unreference(EventLoop::delay($seconds + self::ROUNDING, function (): void {
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

    /** There may be something to settle or to claim. */
    private function poke(): void
    {
        $this->asked = true;
        if (!$this->exchanging && $this->failure === null) {
            $this->exchanging = true;
            EventLoop::queue($this->exchange(...));
        }
    }

    /** Settles what is done and claims others: one question at a time, so that what comes meanwhile goes together. */
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

                        continue; // unless the lease was lost meanwhile
                    }
                    $settlements = $this->someSettlements();
                    $want = $this->mayClaim() ? max(0, $this->capacity - \count($this->jobs)) : 0;
                    $begun = $this->mayHaveBegun();
                    if ($settlements === [] && $want === 0 && $begun === $this->lastTold) {
                        break;
                    }
                    $first = $this->lastNumber + 1;
                    $this->lastNumber += $want;
                    $claim = $this->broker->settle($this->queue, $this->owner, $settlements, $want, $this->options->retention, $first, $begun === $this->lastTold ? null : $begun);
                    $this->lastTold = $begun;
                } catch (BrokerUnavailableException $failure) {
                    array_unshift($this->settlements, ...$settlements);
                    $this->recover($failure, ++$failures);

                    continue;
                }
                $failures = 0;
                $this->release(array_sum(array_map(static fn(Settlement $settlement): int => \strlen($settlement->frame), $settlements)));
                $this->settled += \count($settlements);
                $this->workshop->counters['stale_total'] += \count($claim->stale);
                $ranOut = $this->waiting === [];
                $this->take($claim->deliveries, $first);
                if ($want > 0 && \count($claim->deliveries) === $want) {
                    $this->asked = true;
                    if ($ranOut && \count($settlements) >= $this->workers) {
                        $this->capacity = min(self::MOST, $this->capacity + $this->workers); // they are quicker than the answers: more of them at once
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
        return !$this->draining && $this->jobBytes < $this->workshop->budget->bytes && Clock::now() >= $this->pausedUntil;
    }

    /** The number of the last claim that may begin before the broker is asked again: the pool has it, or has room for it at once. */
    private function mayHaveBegun(): int
    {
        return $this->waiting === [] ? max($this->lastHanded, $this->lastNumber + $this->depth() - \count($this->jobs)) : $this->lastHanded;
    }

    /** How many jobs the pool has at most. */
    private function depth(): int
    {
        return max($this->workers, (int) ($this->capacity * self::HANDED / self::CLAIMED));
    }

    /** @return list<Settlement> as many as one question may have, the others are for the next */
    private function someSettlements(): array
    {
        $size = 0;
        foreach ($this->settlements as $i => $settlement) {
            $size += \strlen($settlement->frame);
            if ($size > self::QUESTION && $i > 0) {
                $this->asked = true;

                return array_splice($this->settlements, 0, $i);
            }
        }
        [$settlements, $this->settlements] = [$this->settlements, []];

        return $settlements;
    }

    /**
     * An answer is missing: what it gave is asked for until there is one, for nobody would run that as long as the lease is renewed.
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

    /** What it was given by answers that did not come, or came too late, and what was withdrawn; not while an answer may be on its way. */
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
        $this->lastHanded = $this->lastNumber; // which of them have which numbers is not known
        $this->take($deliveries, 0);
    }

    /**
     * @param list<Delivery> $deliveries
     * @param int            $first      the number of the first
     */
    private function take(array $deliveries, int $first): void
    {
        if ($this->failure !== null) {
            return; // they are others' soon
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
     * Gives back what can't be verified. An agent that has verified nothing may have a wrong key: its word counts for nothing,
     * it claims less and less often, and stops.
     *
     * @param list<array{Delivery, TamperedFrameException}> $refusals
     */
    private function refuse(array $refusals): void
    {
        $pause = self::REFUSED_PAUSE * 2 ** $this->refusals;
        foreach ($refusals as [$delivery, $refused]) { // the next claim is to be of others
            $this->say($this->hasVerified ? $this->verdicts->refused($delivery, $refused) : $this->verdicts->released($delivery, 2 * $pause));
        }
        if ($refusals === [] || $this->hasVerified || $this->draining) {
            return;
        }
        if (++$this->refusals >= self::REFUSALS) {
            $this->refusal = $refusals[0][1];
            $this->drain();

            return;
        }
        $this->logger->error('None of the jobs that were claimed could be verified: no more are claimed for {pause} s. Is the key that signs them in the key file?', ['pause' => $pause]);
        $this->pausedUntil = Clock::now() + $pause;
        EventLoop::unreference(EventLoop::delay($pause, $this->poke(...)));
    }

    /** Gives the pool what it can do soon; nothing more when the lease may end meanwhile, such as after a stop of this process. */
    private function hand(): void
    {
        if ($this->isLate() || ($this->settlementBytes > 0 && $this->workshop->budget->isFull())) {
            return; // the next beat ends it all, or the engine takes results in first and this is called again
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
            } catch (\Throwable $failure) { // the pool can't be made, or does not take it
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
    private function start(Assignment $job): Future
    {
        return $job->body->isCommand()
            ? \Amp\async(fn() => $this->ran($job, $job->body->asCommand()->runOn($this->workshop->commands(), $job)))
            : $this->workshop->pool()->submit($job->body->task($job->attempt(), $job->delivery->id, $this->maxResult), $job)->map(fn(mixed $outcome) => $this->returned($job, $outcome));
    }

    private function ran(Assignment $job, CommandResult $result): void
    {
        $size = min($this->maxResult, PortableCommand::outputSize($result));
        $this->workshop->budget->await($size);
        $this->settle($job, $this->verdicts->ran($job, $result));
        $this->workshop->budget->release($size);
    }

    private function returned(Assignment $job, mixed $outcome): void
    {
        if ($outcome instanceof \Generator) {
            $outlet = new Outlet($outcome, $this->broker, $this->queue, $this->owner, $job, $this->verdicts, $this->options->retention, $this->workshop->budget);
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

    private function failed(Assignment $job, \Throwable $failure): void
    {
        if ($this->isLate()) { // the process was stopped, and what ran was ended for that: it has not crashed
            $this->abandon(LeaseLostException::of($this->owner));
            unset($this->jobs[$job->delivery->id]);

            return;
        }
        $this->workshop->counters['crashed_total'] += (int) ($failure instanceof WorkerCrashedException || $failure instanceof LauncherException);
        $verdict = $this->verdicts->failed($job, $failure);
        if ($verdict !== null) {
            $this->settle($job, $verdict);
        } else {
            $this->settle($job, $this->verdicts->released($job->delivery));
            $this->abandon($failure); // no worker can be started here
        }
    }

    private function settle(Assignment $job, Settlement $settlement): void
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

    /** The engine has results of so many bytes, or nobody needs them any more. */
    private function release(int $bytes): void
    {
        $this->settlementBytes -= $bytes;
        $this->workshop->budget->release($bytes);
    }

    /** There is no lease any more: ends what runs, before somebody else runs it. */
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

    /** Returns when nothing of it runs any more. */
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
