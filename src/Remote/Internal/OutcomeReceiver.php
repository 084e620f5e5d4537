<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\JobCancelledException;
use Spindle\Worker\ExecutorClosedException;

/**
 * Work that awaits outcomes: a task, a command, a call of map(), or the items of a generator. This object receives all
 * messages about the jobs of the work, except the reports of tasks, which the client's {@see JobCodec} receives.
 */
interface OutcomeReceiver
{
    public function client(): QueueClient;

    /** Returns whether an outcome is missing. A map() with a slow foreach loop may end long after its last outcome. */
    public function awaitsOutcome(): bool;

    /** Returns whether the outcome is needed. If not, a large outcome is not fetched, and onOutcome() receives ''. */
    public function wantsOutcome(): bool;

    /**
     * Returns whether the caller has cancelled the job, even if Amp has not yet called the subscribers of the
     * cancellation. Ignores the cancellation at the end of the process ({@see ProcessEnd::isSending()}): PHP then
     * destroys Amp's DeferredCancellation, which cancels jobs without a call by the application.
     */
    public function isCancelled(): bool;

    /**
     * Receives the outcome. No further message follows for the job.
     *
     * @param string $frame the signed outcome, not verified; can be empty if {@see wantsOutcome()} has returned false
     */
    public function onOutcome(string $id, string $frame): void;

    /**
     * Called when the broker does not know the job, or only knows that the job was cancelled. No further message
     * follows for the job.
     *
     * @param JobCancelledException|null $cancelled null for an unknown job
     */
    public function onUnknown(string $id, ?JobCancelledException $cancelled = null): void;

    /** Called when the engine refuses requests about the job. No further message follows for the job. */
    public function onRefused(string $id, BrokerRefusedException $refused): void;

    /** Called when an agent has stored items of a generator task. An agent can send this message more than once. */
    public function onItems(string $id): void;

    /** Called when the executor is being closed. A call of map() then reads no more of its input. */
    public function close(): void;

    /** Ends the work with $reason as its outcome. The client then cancels the jobs. No further message follows. */
    public function kill(ExecutorClosedException $reason): void;
}
