<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Clock;
use Spindle\Internal\LoopCallback;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\Delivery;

/**
 * A job that an agent has claimed, and the {@see Cancellation} with which the pool runs the job's task or command.
 *
 * The pool subscribes to this object when it gets the task, and unsubscribes when the task has ended. So this object
 * knows when a generator task has ended in its worker, even if the agent no longer reads the items.
 */
final class ClaimedJob implements Cancellation
{
    /** Seconds for a task to end after the agent has stopped reading its items. Then the agent cancels the task. */
    private const GENERATOR_END_TIMEOUT = 1.0;

    /** Number of a generator's items that the agent has stored; null for other tasks. */
    public ?int $itemCount = null;

    public bool $isTimedOut = false;

    /** Time of {@see Clock::now()} at which the pool has last received the job; null before that. */
    public ?float $startedAt = null;

    public bool $isGivenBack = false;

    private readonly DeferredCancellation $cancellation;

    /** Timer of the time limit; null before the task starts, during a pause, and after {@see stopTimeLimit()}. */
    private ?string $timeLimit = null;

    /** Time of {@see Clock::now()} at which the timer of the time limit ends. */
    private float $timeLimitEnd = 0.0;

    /** Rest of the time limit in seconds during a pause; null without a time limit. */
    private ?float $timeLeft = null;

    /** Number of calls of {@see pauseTimeLimit()} without a {@see resumeTimeLimit()}. */
    private int $pauseCount = 0;

    /** @var array<int, true> numbers of the large items that the worker has announced, and that have not arrived */
    private array $announcedItems = [];

    private bool $isRunning = false;

    /** Whether {@see notifyItemsTaken()} was called since the last {@see awaitItemsTaken()}. */
    private bool $isNotified = false;

    private ?Condition $notified = null;
    private ?Condition $ended = null;

    /** @param int $sequenceNumber number of this claim among those of the lease; meaningless after a lost answer */
    public function __construct(
        public readonly Delivery $delivery,
        public readonly JobBody $body,
        public readonly int $sequenceNumber,
    ) {
        $this->cancellation = new DeferredCancellation();
    }

    /** Returns the number of this attempt, starting at 1. A claim that was given back is not an attempt. */
    public function attempt(): int
    {
        return $this->delivery->crashes + $this->delivery->failures + 1;
    }

    /** Returns whether items are stored. A reader has possibly seen them, so the task must not run a second time. */
    public function hasItems(): bool
    {
        return ($this->itemCount ?? 0) > 0;
    }

    public function subscribe(\Closure $callback): string
    {
        $this->isRunning = true;
        $this->startedAt = Clock::now();

        return $this->cancellation->getCancellation()->subscribe($callback);
    }

    public function unsubscribe(string $id): void
    {
        $this->isRunning = false;
        $this->cancellation->getCancellation()->unsubscribe($id);
        $this->ended?->notify();
    }

    public function isRequested(): bool
    {
        return $this->cancellation->isCancelled();
    }

    public function throwIfRequested(): void
    {
        $this->cancellation->getCancellation()->throwIfRequested();
    }

    /** Waits until the task has ended. Cancels the task if it has not ended after GENERATOR_END_TIMEOUT. */
    public function awaitEnd(): void
    {
        $this->stopTimeLimit();
        if ($this->isRunning) {
            $this->ended = new Condition();
            $timer = EventLoop::delay(self::GENERATOR_END_TIMEOUT, $this->cancel(...));
            $this->ended->wait();
            EventLoop::cancel($timer);
        }
    }

    /** Ends the task or command. The outcome is then a cancellation, unless $isTimedOut or $isGivenBack is set. */
    public function cancel(): void
    {
        $this->cancellation->cancel();
        $this->notifyItemsTaken();
    }

    public function giveBack(): void
    {
        if (!$this->cancellation->isCancelled()) {
            $this->isGivenBack = true;
            $this->cancel();
        }
    }

    /** Ends {@see awaitItemsTaken()}, because items were taken, or no more items are wanted. */
    public function notifyItemsTaken(): void
    {
        $this->isNotified = true;
        $this->notified?->notify();
    }

    /**
     * Waits up to $seconds for a call of {@see notifyItemsTaken()}. Does not wait if such a call has occurred since the
     * last wait. The time limit of the task does not include the wait.
     */
    public function awaitItemsTaken(float $seconds): void
    {
        if (!$this->isNotified) {
            $this->pauseTimeLimit();
            $this->notified = new Condition();
            $this->notified->waitFor($seconds);
            $this->resumeTimeLimit();
        }
        $this->isNotified = false;
    }

    public static function isAwaitingReader(self $job): bool
    {
        return $job->notified?->isAwaited() === true;
    }

    /** Starts the task's time limit. Called when a worker starts the task; further calls have no effect. */
    public function startTimeLimit(): void
    {
        if ($this->body->timeout !== null && $this->timeLimit === null) {
            $this->setTimeLimit($this->body->timeout);
        }
    }

    public function stopTimeLimit(): void
    {
        $this->timeLeft = null;
        LoopCallback::cancel($this->timeLimit);
    }

    /** Pauses the time limit until {@see resumeTimeLimit()} has been called as often as this method. */
    public function pauseTimeLimit(): void
    {
        if (++$this->pauseCount === 1) {
            $left = $this->timeLimit === null ? null : $this->timeLimitEnd - Clock::now();
            $this->stopTimeLimit();
            $this->timeLeft = $left;
        }
    }

    /** @param float $counted seconds of the pause that count for the time limit */
    public function resumeTimeLimit(float $counted = 0.0): void
    {
        $left = $this->timeLeft === null ? null : $this->timeLeft -= $counted;
        if (--$this->pauseCount === 0 && $left !== null) {
            $this->timeLeft = null;
            $left > 0.0 ? $this->setTimeLimit($left) : $this->timeOut();
        }
    }

    /**
     * Pauses the time limit until the announced item arrives. Stops the time limit if an outcome was announced. A large
     * item or outcome may wait until this process has memory for it.
     *
     * @param int|null $itemNumber null for an outcome
     */
    public function pauseForAnnounced(?int $itemNumber): void
    {
        if ($itemNumber === null) {
            $this->stopTimeLimit();
        } else {
            $this->announcedItems[$itemNumber] = true;
            $this->pauseTimeLimit();
        }
    }

    public function itemArrived(int $number): void
    {
        if (isset($this->announcedItems[$number])) {
            unset($this->announcedItems[$number]);
            $this->resumeTimeLimit();
        }
    }

    private function setTimeLimit(float $seconds): void
    {
        $this->timeLimitEnd = Clock::now() + $seconds;
        $this->timeLimit = WeakTimer::after($seconds, $this, static fn(self $job) => $job->timeOut());
    }

    private function timeOut(): void
    {
        $this->isTimedOut = $this->isTimedOut || !$this->isRequested(); // a cancelled job can't time out
        $this->cancel();
    }
}
