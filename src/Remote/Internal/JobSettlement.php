<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\LauncherException;
use Spindle\Remote\Delivery;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\Keys;
use Spindle\Remote\NoRetry;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\TamperedFrameException;
use Spindle\Worker\PortableOutcome;
use Spindle\Worker\PortableTask;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;

/** Makes settlements from the ends of runs: a job is done, is retried, is given back, or is dead. */
final class JobSettlement
{
    private const LOST_REASON = 'each of the agents that had it was lost';

    /** Messages of PHP and {@see PortableTask} when an agent's code has no such class or function. */
    private const MISSING_CODE_PATTERN = '/^(?:(?:Class|Interface|Trait|Enum) "[^"]+" not found|Call to undefined function |A worker has no )/';

    /** Attempts, at least, for a task that could not be decoded. It has not run, so another agent gets it. */
    private const MIN_UNREADABLE_ATTEMPTS = 2;

    /** Refusals after which a job is dead even if a single agent refused it, because there is no other then. */
    private const MAX_REFUSALS = 4;

    /** @param int $maxResult largest result in bytes */
    public function __construct(
        private readonly Keys $keys,
        private readonly string $queue,
        private readonly string $owner,
        private readonly int $maxResult,
    ) {}

    /**
     * @param int $number of the claim, among those of this owner; 0 when unknown
     *
     * @throws TamperedFrameException
     */
    public function open(Delivery $delivery, int $number): ClaimedJob
    {
        $body = Frame::open($this->keys, Frame::JOB, $this->queue, $delivery->id, $delivery->frame);
        try {
            return new ClaimedJob($delivery, TaskBody::read($body), $number);
        } catch (\ValueError $unknown) {
            throw TamperedFrameException::of(
                $delivery->id,
                "its body, though signed, can't be read here ({$unknown->getMessage()}): is it of another version of Spindle?",
            );
        }
    }

    /** Returns the settlement of a job that must not run again; null for others. */
    public function beforehand(ClaimedJob $job): ?Settlement
    {
        $delivery = $job->delivery;

        return match (true) {
            $delivery->cancelled => $this->cancelled($delivery),
            $delivery->streamed, $delivery->crashes >= $job->body->policy->crashes => $this->lost(
                $job,
                $job->attempt() - 1,
                self::LOST_REASON,
            ),
            default => null,
        };
    }

    /**
     * Refuses a job whose frame can't be verified, for an agent that has verified others. The job is dead when another
     * agent refuses it too, or when there is no other agent.
     */
    public function refused(Delivery $delivery, TamperedFrameException $refused): Settlement
    {
        $policy = new JobRetryPolicy(tries: self::MAX_REFUSALS, delay: 0.2);
        $fails = $delivery->fails + 1;
        $kind = $fails < $policy->tries ? SettlementKind::Refused : SettlementKind::Dead;

        return $this->settlement(
            $delivery,
            $kind,
            $delivery->crashes,
            $fails,
            $policy->delayAfter($fails),
            outcome: Outcomes::refused($refused),
            why: $this->why($refused->getMessage(), 0),
        );
    }

    public function cancelled(Delivery $delivery): Settlement
    {
        return $this->settlement($delivery, SettlementKind::Cancelled, outcome: Outcomes::cancelled());
    }

    /** @param float $delay seconds until an agent may claim the job */
    public function released(Delivery $delivery, float $delay = 0.0): Settlement
    {
        return $this->settlement($delivery, SettlementKind::Release, $delivery->crashes, $delivery->fails, $delay);
    }

    /** @param string $outcome as {@see PortableTask} returns it */
    public function returned(ClaimedJob $job, string $outcome): Settlement
    {
        $size = PortableOutcome::excessSize($outcome);
        if ($size !== null) {
            return $this->tooLarge(
                $job,
                ResultTooLargeException::of($job->delivery->id, $size - TaskBody::KIND_BYTES, $this->maxResult),
            );
        }
        if (PortableOutcome::isSuccess($outcome)) {
            return $this->settlement(
                $job->delivery,
                SettlementKind::Done,
                outcome: Outcomes::ofTask($job->attempt(), $job->items, $outcome),
            );
        }
        $thrown = PortableOutcome::thrown($outcome);
        if (
            $thrown !== null
            && preg_match(self::MISSING_CODE_PATTERN, $thrown->message) === 1
            && ($thrown->isA(\Error::class) || PortableOutcome::isUnreadable($outcome))
        ) {
            return $this->missing($job, $outcome, $thrown);
        }

        return $this->failedTry(
            $job,
            $outcome,
            $thrown !== null && !$thrown->isA(NoRetry::class),
            $thrown === null
                ? 'its result can\'t travel'
                : "{$thrown->class}: {$thrown->message}\n{$thrown->traceAsString()}",
        );
    }

    /** Returns the settlement of a command that has a result, whatever its exit status. */
    public function ran(ClaimedJob $job, CommandResult $result): Settlement
    {
        if ($job->isGivenBack && $result->cancelled) {
            return $this->released($job->delivery);
        }

        return $this->settlement(
            $job->delivery,
            $result->cancelled && $result->error !== null ? SettlementKind::Cancelled : SettlementKind::Done,
            outcome: Outcomes::ofCommand($job->attempt(), PortableCommand::outcome($result, $this->maxResult)),
        );
    }

    /** @return Settlement|null null for a failure that the task did not cause */
    public function failed(ClaimedJob $job, \Throwable $failure): ?Settlement
    {
        return match (true) {
            $job->isGivenBack => $this->released($job->delivery),
            $job->late => $this->failedTry(
                $job,
                PortableOutcome::failed(
                    TaskTimeoutException::after($job->body->timeout ?? 0.0, 1, null),
                    $job->body->timeout,
                ),
                true,
                'it ran for too long',
            ),
            $failure instanceof UnserializableException
                => $this->failedTry($job, PortableOutcome::refused($failure), false, $failure->getMessage()),
            $failure instanceof CancelledException => $this->cancelled($job->delivery),
            $job->body->isCommand() && !$failure instanceof LauncherException => $this->lost(
                $job,
                $job->attempt(),
                $failure->getMessage(),
            ),
            $failure instanceof LauncherException && $failure->unfinished !== [] => $this->mayCrashAgain($job)
                ? $this->crashed($job)
                : $this->lost($job, $job->attempt(), $failure->getMessage()),
            $failure instanceof WorkerCrashedException => $this->mayCrashAgain($job)
                ? $this->crashed($job)
                : $this->dead($job, $job->attempt(), PortableOutcome::failed($failure, null), $failure->getMessage()),
            default => null,
        };
    }

    /** Returns a task's report as a signed frame. */
    public function report(Delivery $delivery, string $bytes): string
    {
        return Frame::seal($this->keys, Frame::REPORT, $this->queue, $delivery->id, $delivery->number, $bytes);
    }

    public function item(Delivery $delivery, int $index, string $bytes): string
    {
        return Frame::seal(
            $this->keys,
            Frame::ITEM,
            $this->queue,
            $delivery->id,
            $delivery->number,
            pack('V', $index) . $bytes,
        );
    }

    private function mayCrashAgain(ClaimedJob $job): bool
    {
        return !$job->hasItems() && $job->delivery->crashes + 1 < $job->body->policy->crashes;
    }

    private function crashed(ClaimedJob $job): Settlement
    {
        return $this->settlement(
            $job->delivery,
            SettlementKind::Retry,
            $job->delivery->crashes + 1,
            $job->delivery->fails,
        );
    }

    private function lost(ClaimedJob $job, int $attempts, string $why): Settlement
    {
        return $job->body->isCommand()
            ? $this->settlement(
                $job->delivery,
                SettlementKind::Dead,
                outcome: Outcomes::ofCommand($attempts, PortableCommand::lost($why)),
                why: $this->why($why, $attempts),
            )
            : $this->dead(
                $job,
                $attempts,
                PortableOutcome::failed(
                    WorkerCrashedException::died(null, null, $why, false, '', 0, $attempts, null),
                    null,
                ),
                $why,
            );
    }

    private function tooLarge(ClaimedJob $job, ResultTooLargeException $tooLarge): Settlement
    {
        return $this->settlement(
            $job->delivery,
            SettlementKind::Dead,
            outcome: Outcomes::refused($tooLarge),
            why: $this->why($tooLarge->getMessage(), $job->attempt()),
        );
    }

    private function failedTry(ClaimedJob $job, string $outcome, bool $mayHelp, string $why): Settlement
    {
        $fails = $job->delivery->fails + 1;

        return $mayHelp && !$job->hasItems() && $fails < $job->body->policy->tries
            ? $this->settlement(
                $job->delivery,
                SettlementKind::Retry,
                $job->delivery->crashes,
                $fails,
                $job->body->policy->delayAfter($fails),
            )
            : $this->dead($job, $job->attempt(), $outcome, $why);
    }

    /** Retries a job on another agent, because a class or function is missing here. */
    private function missing(ClaimedJob $job, string $outcome, Thrown $thrown): Settlement
    {
        $policy = $job->body->policy;
        $fails = $job->delivery->fails + 1;
        $tries = PortableOutcome::isUnreadable($outcome)
            ? max(self::MIN_UNREADABLE_ATTEMPTS, $policy->tries)
            : $policy->tries;

        return !$job->hasItems() && $fails < $tries
            ? $this->settlement(
                $job->delivery,
                SettlementKind::Elsewhere,
                $job->delivery->crashes,
                $fails,
                $policy->delayAfter($fails),
            )
            : $this->dead(
                $job,
                $job->attempt(),
                $outcome,
                "{$thrown->class}: {$thrown->message}\n{$thrown->traceAsString()}",
            );
    }

    private function dead(ClaimedJob $job, int $attempts, string $outcome, string $why): Settlement
    {
        return $this->settlement(
            $job->delivery,
            SettlementKind::Dead,
            outcome: Outcomes::ofTask($attempts, $job->items, $outcome),
            why: $this->why($why, $attempts),
        );
    }

    private function why(string $why, int $attempts): string
    {
        return json_encode(
            ['why' => $why, 'attempts' => $attempts, 'owner' => $this->owner],
            \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_THROW_ON_ERROR,
        );
    }

    private function settlement(
        Delivery $delivery,
        SettlementKind $kind,
        int $crashes = 0,
        int $fails = 0,
        float $delay = 0.0,
        ?string $outcome = null,
        string $why = '',
    ): Settlement {
        $frame = $outcome === null
            ? ''
            : Frame::seal($this->keys, Frame::OUTCOME, $this->queue, $delivery->id, $delivery->number, $outcome);

        return new Settlement($delivery->id, $delivery->number, $kind, $crashes, $fails, $delay, $frame, $why);
    }
}
