<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Excerpt;
use Spindle\LauncherException;
use Spindle\Remote\Delivery;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\NoRetry;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\SigningKeys;
use Spindle\Worker\PortableOutcome;
use Spindle\Worker\PortableTask;
use Spindle\Worker\RetryLaterException;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;

/** Verifies claimed jobs, and creates their settlements: messages to the engine that say how the claims ended. */
final class SettlementFactory
{
    /** Matches messages of PHP and {@see PortableTask} about a class or function that the agent's code lacks. */
    private const MISSING_CODE_PATTERN = '/^(?:(?:Class|Interface|Trait|Enum) "[^"]+" not found'
        . '|Call to undefined function |A worker has no )/';

    /** Maximum delay of a job after its first refusal, in seconds. The next delays are longer. */
    private const REFUSAL_DELAY = 0.2;

    /** Minimum delay of a retry, in seconds. Without a delay, agents would claim the job again before new jobs. */
    private const MIN_RETRY_DELAY = 0.001;

    /** Maximum bytes of an outcome to which the agent's name is added. Most outcomes about missing code are smaller. */
    private const MAX_NOTED_BYTES = 0x1_0000;

    /** Maximum bytes of the reason in a dead letter: the exception's message, place, causes and trace. */
    private const MAX_REASON_BYTES = 0x1_0000;
    private const MAX_SMALL_REASON_BYTES = 0x1000;

    /** Maximum bytes of the first message in a reason. Each further message gets half as much, or the minimum. */
    private const MAX_MESSAGE_BYTES = 0x2000;
    private const MIN_MESSAGE_BYTES = 0x100;

    public function __construct(
        private readonly SigningKeys $keys,
        private readonly string $queue,
        private readonly string $owner,
        public int $maxResultBytes,
        private readonly FailedJobLog $log,
    ) {}

    /**
     * Verifies and decodes a claimed job.
     *
     * @param int $sequenceNumber as in {@see \Spindle\Remote\Broker::settleAndClaim()}; meaningless after a lost answer
     *
     * @throws InvalidSignatureException
     */
    public function open(Delivery $delivery, int $sequenceNumber): ClaimedJob
    {
        $body = $this->keys->open(FrameKind::Job, $this->queue, $delivery->id, $delivery->frame);
        try {
            return new ClaimedJob($delivery, JobBody::read($body), $sequenceNumber);
        } catch (\ValueError $malformed) {
            throw InvalidSignatureException::of(
                $delivery->id,
                "its body is signed, but can't be read ({$malformed->getMessage()}). "
                    . 'Was it submitted by another version of Spindle?',
            );
        }
    }

    /** Returns the settlement of a job that must not run; null if the agent may run the job. */
    public function withoutRun(ClaimedJob $job): ?Settlement
    {
        $delivery = $job->delivery;
        if ($delivery->cancelled) {
            return $this->cancelled($delivery);
        }
        $reason = match (true) {
            $delivery->streamed => 'its agent was lost or stopped after items were stored, so it is not retried',
            $delivery->crashes < $job->body->retryPolicy->maxCrashes => null,
            $delivery->crashes === 1 => 'its agent was lost',
            default => "its agent or worker was lost {$delivery->crashes} times",
        };
        if ($delivery->streamed) {
            $job->itemCount = 0; // any number makes a reader take the stored items before it gets the exception
        }

        return $reason === null ? null : $this->lost($job, max(1, $job->attempt() - 1), $reason);
    }

    /**
     * Refuses a job whose frame is too large, or can't be verified although this agent has verified other jobs. After
     * Delivery::MAX_REFUSALS earlier refusals, or one by another agent, this refusal makes the job a dead letter.
     */
    public function refused(
        Delivery $delivery,
        InvalidSignatureException|PayloadTooLargeException $refused,
    ): Settlement {
        return $this->settlement(
            $delivery,
            $delivery->refusals < Delivery::MAX_REFUSALS ? SettlementKind::Refused : SettlementKind::Dead,
            $delivery->crashes,
            $delivery->failures,
            (new JobRetryPolicy(delay: self::REFUSAL_DELAY))->delayAfter($delivery->refusals + 1),
            outcome: OutcomeBody::refused($refused),
            reason: $this->reasonJson($refused->getMessage(), 0),
        );
    }

    public function cancelled(Delivery $delivery): Settlement
    {
        return $this->settlement($delivery, SettlementKind::Cancelled, outcome: OutcomeBody::cancelled());
    }

    /** Gives a job back, with the same numbers of failures and crashes. The job can be claimed after $delay seconds. */
    public function released(Delivery $delivery, float $delay = 0.0): Settlement
    {
        return $this->settlement($delivery, SettlementKind::Release, $delivery->crashes, $delivery->failures, $delay);
    }

    /** @param string $outcome outcome as {@see PortableTask} returns it */
    public function ofTask(ClaimedJob $job, string $outcome): Settlement
    {
        $size = PortableOutcome::excessSize($outcome);
        if ($size !== null) {
            return $this->ofLargeResult(
                $job,
                ResultTooLargeException::of($job->delivery->id, $size, $this->maxResultBytes),
            );
        }
        if (PortableOutcome::isSuccess($outcome)) {
            return $this->settlement(
                $job->delivery,
                SettlementKind::Done,
                outcome: OutcomeBody::ofTask($job->attempt(), $job->itemCount, $outcome),
            );
        }
        $thrown = PortableOutcome::thrown($outcome);
        if ($thrown === null) {
            $reason = PortableOutcome::refusal($outcome) ?? 'the outcome of the task can\'t be read';

            return $this->failedAttempt($job, $outcome, 1, $job->body->named($reason));
        }

        return $this->ofThrown($job, $outcome, $thrown);
    }

    private function ofLargeResult(ClaimedJob $job, ResultTooLargeException $tooLarge): Settlement
    {
        $reason = $job->body->named($tooLarge->getMessage());

        return $this->dead($job, $job->attempt(), OutcomeBody::tooLarge($tooLarge, $job->itemCount), $reason);
    }

    /** Returns a settlement that the engine accepts: a failure if the outcome exceeds $maxBytes, and a short reason. */
    public function smaller(Settlement $settlement, int $maxBytes): Settlement
    {
        [$id, $claim] = [$settlement->id, $settlement->claimNumber];
        [$kind, $frame] = [$settlement->kind, $settlement->frame];
        /** @var array{reason: string, attempts: int} $dead */
        $dead = json_decode($settlement->reason, true) ?? ['reason' => '', 'attempts' => 0];
        if (\strlen($frame) > $maxBytes) {
            $tooLarge = ResultTooLargeException::of($id, \strlen($frame), $this->maxResultBytes);
            $large = $this->keys->open(FrameKind::Outcome, $this->queue, $id, $frame);
            $outcome = OutcomeBody::replacement($large, $tooLarge);
            $frame = $this->keys->seal(FrameKind::Outcome, $this->queue, $id, $claim, $outcome);
            $kind = OutcomeBody::isOfCommand($outcome) ? $kind : SettlementKind::Dead;
            $dead = ['reason' => $tooLarge->getMessage(), 'attempts' => OutcomeBody::attempts($large)];
            $kind === $settlement->kind ? null : $this->log->add($id, $dead['attempts'], $dead['reason'], null);
        }
        $reason = $kind === SettlementKind::Dead
            ? $this->reasonJson(Excerpt::of($dead['reason'], self::MAX_SMALL_REASON_BYTES), $dead['attempts'])
            : '';

        return new Settlement($id, $claim, $kind, frame: $frame, reason: $reason);
    }

    /** Returns the settlement of a command that has a result. Any exit status is a result. */
    public function ofCommand(ClaimedJob $job, CommandResult $result): Settlement
    {
        if ($result->cancelled && ($job->isGivenBack || !$job->isRequested())) {
            return $this->released($job->delivery);
        }

        return $this->settlement(
            $job->delivery,
            $result->cancelled && $result->error !== null ? SettlementKind::Cancelled : SettlementKind::Done,
            outcome: OutcomeBody::ofCommand(
                $job->attempt(),
                PortableCommand::encodeResult($result, $this->maxResultBytes),
            ),
        );
    }

    /** Returns the settlement of a job that ended without a result; null if the job is not the cause of $failure. */
    public function ofFailure(ClaimedJob $job, \Throwable $failure): ?Settlement
    {
        return match (true) {
            $job->isGivenBack => $this->released($job->delivery),
            $job->isTimedOut => $this->failedAttempt(
                $job,
                PortableOutcome::failed(
                    TaskTimeoutException::after($job->body->timeout ?? 0.0, 1, null),
                    $job->body->timeout,
                ),
                $job->body->retryPolicy->maxAttempts,
                $job->body->named("the task exceeded its limit of {$job->body->timeout} s (RemoteOptions::\$timeout)"),
            ),
            $failure instanceof ResultTooLargeException => $this->ofLargeResult($job, $failure),
            $failure instanceof UnserializableException
                => $this->failedAttempt($job, PortableOutcome::refused($failure), 1, $failure->getMessage()),
            $failure instanceof CancelledException => $this->cancelled($job->delivery),
            $job->body->isCommand && !$failure instanceof LauncherException => $this->lost(
                $job,
                $job->attempt(),
                $failure->getMessage(),
            ),
            $failure instanceof LauncherException && $failure->unfinished !== [] && $failure->mayHaveStarted
                => $this->mayCrashAgain($job)
                ? $this->crashed($job, $failure->getMessage())
                : $this->lost($job, $job->attempt(), $failure->getMessage()),
            $failure instanceof WorkerCrashedException => $this->mayCrashAgain($job)
                ? $this->crashed($job, $failure->getMessage())
                : $this->deadTask(
                    $job,
                    $job->attempt(),
                    PortableOutcome::failed($failure, null),
                    $job->body->named($failure->getMessage()),
                ),
            default => null,
        };
    }

    public function report(Delivery $delivery, string $bytes): string
    {
        return $this->keys->seal(FrameKind::Report, $this->queue, $delivery->id, $delivery->claimNumber, $bytes);
    }

    /** Returns item $index of a generator as a signed frame. The first item has the index 0. */
    public function item(Delivery $delivery, int $index, string $bytes): string
    {
        $body = pack('V', $index) . $bytes;

        return $this->keys->seal(FrameKind::Item, $this->queue, $delivery->id, $delivery->claimNumber, $body);
    }

    private function ofThrown(ClaimedJob $job, string $outcome, Thrown $thrown): Settlement
    {
        $minDelay = RetryLaterException::delayOf($thrown);
        $mayBePostponed = $job->delivery->postponedSeconds < RetryLaterException::MAX_TOTAL_SECONDS;
        if ($minDelay !== null && $mayBePostponed && !$job->hasItems()) {
            return $this->postponed($job->delivery, $minDelay);
        }
        $isUnreadable = PortableOutcome::isUnreadable($outcome);
        $attempts = $job->body->retryPolicy->maxAttempts;
        $isMissingCode = preg_match(self::MISSING_CODE_PATTERN, $thrown->message) === 1
            && ($isUnreadable || $thrown->isA(\Error::class));
        if ($isMissingCode && \strlen($outcome) <= self::MAX_NOTED_BYTES) {
            $outcome = PortableOutcome::withNote($outcome, " (on the agent {$this->owner})");
        }
        [$maxAttempts, $retry] = match (true) {
            // Another agent possibly has the class or function that this agent lacks.
            $isMissingCode => [$isUnreadable ? max(2, $attempts) : $attempts, SettlementKind::RetryElsewhere],
            $thrown->isA(NoRetry::class) => [1, SettlementKind::Retry],
            default => [$attempts, SettlementKind::Retry],
        };

        return $this->failedAttempt(
            $job,
            $outcome,
            $maxAttempts,
            $job->body->named(self::reasonOf($thrown)),
            $retry,
            self::place($thrown),
            $minDelay ?? 0.0,
        );
    }

    private function postponed(Delivery $delivery, float $delay): Settlement
    {
        return $this->settlement(
            $delivery,
            SettlementKind::Postpone,
            $delivery->crashes,
            $delivery->failures,
            max(self::MIN_RETRY_DELAY, $delay),
        );
    }

    /** Returns the exception and its previous exceptions, one after the other, and then the trace of the exception. */
    private static function reasonOf(Thrown $thrown): string
    {
        $parts = [];
        for ($part = $thrown; $part !== null; $part = $part->previous) {
            [$class] = explode("\0", $part->class); // an anonymous class has a name with NUL
            $bytes = max(self::MIN_MESSAGE_BYTES, self::MAX_MESSAGE_BYTES >> \count($parts));
            $message = $part->message === '' ? 'no message' : Excerpt::of($part->message, $bytes);
            $parts[] = ($parts === [] ? '' : 'caused by ') . "{$class}: {$message}" . self::place($part);
        }

        return implode("\n", [...$parts, $thrown->traceAsString()]);
    }

    private static function place(Thrown $thrown): string
    {
        return " ({$thrown->file}:{$thrown->line})";
    }

    private function mayCrashAgain(ClaimedJob $job): bool
    {
        return !$job->hasItems() && $job->delivery->crashes + 1 < $job->body->retryPolicy->maxCrashes;
    }

    private function crashed(ClaimedJob $job, string $reason): Settlement
    {
        $delivery = $job->delivery;
        $this->log->add($delivery->id, $job->attempt(), $job->body->named($reason), 0.0);

        return $this->settlement($delivery, SettlementKind::Retry, $delivery->crashes + 1, $delivery->failures);
    }

    /** Makes a job a dead letter, because its worker, launcher or agent was lost, or its command could not run. */
    private function lost(ClaimedJob $job, int $attempts, string $reason): Settlement
    {
        if ($job->body->isCommand) {
            $outcome = OutcomeBody::ofCommand($attempts, PortableCommand::encodeError($reason));

            return $this->dead($job, $attempts, $outcome, $reason);
        }
        $failure = WorkerCrashedException::died(null, null, $reason, false, '', 0, $attempts, null);

        return $this->deadTask($job, $attempts, PortableOutcome::failed($failure, null), $job->body->named($reason));
    }

    /**
     * Retries a job after a failed attempt, or makes it a dead letter.
     *
     * @param int $maxAttempts number of failed attempts after which the job becomes a dead letter
     */
    private function failedAttempt(
        ClaimedJob $job,
        string $outcome,
        int $maxAttempts,
        string $reason,
        SettlementKind $retry = SettlementKind::Retry,
        string $place = '',
        float $minDelay = 0.0,
    ): Settlement {
        $failures = $job->delivery->failures + 1;
        if ($job->hasItems() || $failures >= $maxAttempts) {
            return $this->deadTask($job, $job->attempt(), $outcome, $reason, $place);
        }
        $delay = max($minDelay, $job->body->retryPolicy->delayAfter($failures));
        $this->log->add($job->delivery->id, $job->attempt(), $reason, $delay, $place);

        return $this->settlement(
            $job->delivery,
            $retry,
            $job->delivery->crashes,
            $failures,
            max(self::MIN_RETRY_DELAY, $delay),
        );
    }

    private function deadTask(
        ClaimedJob $job,
        int $attempts,
        string $outcome,
        string $reason,
        string $place = '',
    ): Settlement {
        $outcome = OutcomeBody::ofTask($attempts, $job->itemCount, $outcome);

        return $this->dead($job, $attempts, $outcome, $reason, $place);
    }

    private function dead(
        ClaimedJob $job,
        int $attempts,
        string $outcome,
        string $reason,
        string $place = '',
    ): Settlement {
        $this->log->add($job->delivery->id, $attempts, $reason, null, $place);

        return $this->settlement(
            $job->delivery,
            SettlementKind::Dead,
            outcome: $outcome,
            reason: $this->reasonJson($reason, $attempts),
        );
    }

    private function reasonJson(string $reason, int $attempts): string
    {
        $reason = Excerpt::of($reason, self::MAX_REASON_BYTES);

        return json_encode(
            ['reason' => $reason, 'attempts' => $attempts, 'owner' => $this->owner],
            \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_THROW_ON_ERROR,
        );
    }

    private function settlement(
        Delivery $delivery,
        SettlementKind $kind,
        int $crashes = 0,
        int $failures = 0,
        float $delay = 0.0,
        ?string $outcome = null,
        string $reason = '',
    ): Settlement {
        [$id, $claim] = [$delivery->id, $delivery->claimNumber];
        $frame = $outcome === null ? '' : $this->keys->seal(FrameKind::Outcome, $this->queue, $id, $claim, $outcome);

        return new Settlement($id, $claim, $kind, $crashes, $failures, $delay, $frame, $reason);
    }
}
