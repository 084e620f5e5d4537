<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\RunSummary;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\LoopTurn;
use Spindle\LauncherException;

/**
 * One call of run() or runInOrder(): pulls commands from the caller's iterable and yields results to the caller's loop.
 *
 * A callback of the event loop pulls the input, so that an input that suspends does not delay results. Of the pulled
 * commands, at most concurrency plus lookahead have no result that the caller has read. This number is the window.
 */
final class Run implements PendingCommandOwner
{
    /** How long commands are pulled, or results returned, before the event loop runs again, in nanoseconds. */
    private const SLICE_NANOSECONDS = 1_000_000;

    /** The lookahead is 0 when the commands in the window and their inputs have this number of bytes, or more. */
    private const MAX_LOOKAHEAD_BYTES = 16 << 20;

    /** @var array<int, PendingCommand> pending commands, by id */
    private array $commands = [];

    /** @var \SplQueue<CommandResult> results for the caller */
    private \SplQueue $ready;

    /** @var array<int, CommandResult> with runInOrder(): results that wait for earlier results, by id */
    private array $early = [];

    /** @var \SplQueue<int> with runInOrder(): ids of commands in the order of the input */
    private \SplQueue $order;

    /** @var \Iterator<mixed, mixed> */
    private readonly \Iterator $input;

    private readonly int $lane;
    private bool $rewound = false;
    private bool $inputEnded = false;
    private bool $pulling = false;
    private bool $halted = false;

    /** Whether the caller reads no more results. */
    private bool $abandoned = false;

    /** Number of pulled commands whose results the caller has not read, and their bytes. */
    private int $unreadCount = 0;
    private int $unreadBytes = 0;

    private int $succeeded = 0;
    private int $failed = 0;

    /** When the event loop ran last, in nanoseconds of {@see hrtime()}. */
    private int $lastLoopTurn = 0;

    /** Exception that the caller gets after all results. */
    private ?\Throwable $failure = null;

    private readonly Condition $changed;

    /** @param iterable<mixed, mixed> $commands each value is checked to be a {@see Command} when it is pulled */
    public function __construct(
        private readonly CommandDispatcher $dispatcher,
        iterable $commands,
        private readonly bool $inOrder,
    ) {
        $this->input = \is_array($commands) ? new \ArrayIterator($commands) : new \IteratorIterator($commands);
        $this->ready = new \SplQueue();
        $this->order = new \SplQueue();
        $this->changed = new Condition();
        $this->lane = $dispatcher->open($this);
    }

    /** @return \Generator<mixed, CommandResult, mixed, RunSummary> cancels the commands if the caller stops reading */
    public function results(?Cancellation $cancellation): \Generator
    {
        $subscription = $cancellation?->subscribe(function (CancelledException $cancelled): void {
            $this->failure ??= $cancelled;
            $this->cancelAll();
            $this->changed->notify();
        });
        try {
            $cancellation?->throwIfRequested();
            while (($result = $this->nextResult()) !== null) {
                yield $result->key => $result;
                $this->unreadBytes -= self::sizeOf($result->command);
                --$this->unreadCount;
            }

            return new RunSummary($this->succeeded, $this->failed, $this->halted);
        } finally {
            $this->abandoned = true;
            $this->cancelAll();
            if ($subscription !== null) {
                $cancellation?->unsubscribe($subscription);
            }
        }
    }

    public function finished(PendingCommand $pending, CommandResult $result): void
    {
        unset($this->commands[$pending->id]);
        if ($this->abandoned) {
            return;
        }
        $result->succeeded() ? ++$this->succeeded : ++$this->failed;
        if ($this->inOrder) {
            $this->early[$pending->id] = $result;
            while (!$this->order->isEmpty() && isset($this->early[$this->order->bottom()])) {
                $id = $this->order->dequeue();
                $this->ready->enqueue($this->early[$id]);
                unset($this->early[$id]);
            }
        } else {
            $this->ready->enqueue($result);
        }
        $this->checkHalt();
        $this->changed->notify();
    }

    public function close(): void
    {
        if (!$this->inputEnded) {
            $this->inputEnded = true;
            $this->failure ??= LauncherException::closedBeforeInputEnd();
            $this->changed->notify();
        }
    }

    public function drain(): void
    {
        $this->inputEnded = true;
        foreach ($this->commands as $pending) {
            $this->dispatcher->withdraw($pending);
        }
        $this->dispatcher->flush();
        $this->changed->notify();
    }

    public function lost(PendingCommand $pending, \Throwable $reason): void
    {
        unset($this->commands[$pending->id]);
        $this->unreadBytes -= self::sizeOf($pending->command);
        --$this->unreadCount;
        $this->failure ??= $reason;
        $this->cancelAll();
        $this->changed->notify();
    }

    /** Returns the next result; null after the last. After all results, throws the failure that ended the run. */
    private function nextResult(): ?CommandResult
    {
        while (true) {
            $now = hrtime(true);
            if (!$this->ready->isEmpty()) {
                if ($now - $this->lastLoopTurn < self::SLICE_NANOSECONDS) {
                    return $this->ready->dequeue();
                }
                // The caller's loop body took some time. Let the event loop run before the next result.
                $this->lastLoopTurn = $now;
                $this->pullSoon();
                LoopTurn::await();

                continue;
            }
            // The run does not wait for a pull that is suspended in the input, once the input counts as ended.
            if ($this->commands === [] && $this->inputEnded) {
                return $this->nextEarlyResult() ?? ($this->failure === null ? null : throw $this->failure);
            }
            $this->pullSoon();
            $this->changed->wait();
            $this->lastLoopTurn = hrtime(true);
        }
    }

    /** Returns the next result in order. Skips commands without a result. */
    private function nextEarlyResult(): ?CommandResult
    {
        while (!$this->order->isEmpty()) {
            $id = $this->order->dequeue();
            if (isset($this->early[$id])) {
                return $this->early[$id];
            }
        }

        return null;
    }

    /** Queues a call of {@see pull()} if more of the window is free than half of the lookahead. */
    private function pullSoon(): void
    {
        if ($this->pulling || $this->inputEnded || $this->availableWindow() <= intdiv($this->lookahead(), 2)) {
            return;
        }
        $this->pulling = true;
        EventLoop::queue($this->pull(...));
    }

    private function availableWindow(): int
    {
        return $this->dispatcher->concurrency() + $this->lookahead() - $this->unreadCount;
    }

    /**
     * Returns the lookahead; 0 with a halt policy, and while many bytes of commands or output are kept. Free slots are
     * filled even then, because the output may belong to results that the caller keeps.
     */
    private function lookahead(): int
    {
        return $this->dispatcher->options->halt === null
            && $this->unreadBytes < self::MAX_LOOKAHEAD_BYTES
            && !$this->dispatcher->store->isFull()
            ? $this->dispatcher->options->lookahead
            : 0;
    }

    private function pull(): void
    {
        // If the input suspends, this callback sends the commands that were pulled before.
        EventLoop::queue($this->dispatcher->flush(...));
        $end = hrtime(true) + self::SLICE_NANOSECONDS;
        try {
            while (!$this->inputEnded && $this->availableWindow() > 0) {
                $this->pullOne();
                if (hrtime(true) > $end) {
                    EventLoop::defer($this->pullSoon(...)); // after other events
                    break;
                }
            }
        } catch (\Throwable $thrown) {
            $this->inputEnded = true;
            $this->failure ??= $thrown;
        } finally {
            $this->pulling = false;
            $this->dispatcher->flush();
        }
        if (!$this->ready->isEmpty() || $this->inputEnded || $this->failure !== null) {
            $this->changed->notify();
        }
    }

    private function pullOne(): void
    {
        if ($this->rewound) {
            $this->input->next();
        } else {
            $this->input->rewind();
            $this->rewound = true;
        }
        // The run may have ended while the input was suspended.
        if ($this->inputEnded || !$this->input->valid()) {
            $this->inputEnded = true;

            return;
        }
        $command = $this->input->current();
        if (!$command instanceof Command) {
            throw new \ValueError(\sprintf(
                'The input of a pool must yield %s, not %s',
                Command::class,
                get_debug_type($command),
            ));
        }
        $pending = $this->dispatcher->submit($this->lane, $this->input->key(), $command, $this);
        $this->commands[$pending->id] = $pending;
        $this->unreadBytes += self::sizeOf($command);
        ++$this->unreadCount;
        if ($this->inOrder) {
            $this->order->enqueue($pending->id);
        }
        // Commands with a free slot are sent immediately, because the input may block. Others are sent together.
        if (\count($this->commands) <= $this->dispatcher->concurrency() || $this->dispatcher->unsentBytes() > 1 << 15) {
            $this->dispatcher->flush();
        }
    }

    private static function sizeOf(Command $command): int
    {
        $size = \strlen($command->line ?? '') + (\is_string($command->input) ? \strlen($command->input) : 0);
        foreach ($command->arguments as $argument) {
            $size += \strlen($argument);
        }
        foreach ($command->environment as $value) {
            $size += \strlen($value ?? '');
        }

        return $size;
    }

    private function checkHalt(): void
    {
        $halt = $this->dispatcher->options->halt;
        if ($halt === null || $this->halted || !$halt->isReached($this->succeeded, $this->failed)) {
            return;
        }
        $this->halted = true;
        $halt->cancelsRunning ? $this->cancelAll() : $this->drain();
    }

    /** Ends the input and cancels all pending commands. */
    private function cancelAll(): void
    {
        $this->inputEnded = true;
        $this->dispatcher->cancel($this->commands);
    }
}
