<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\RunSummary;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\Async\InputConsumer;
use Spindle\Internal\Async\InputPump;
use Spindle\Internal\Async\LoopTurn;
use Spindle\LauncherException;

/**
 * One call of run() or runInOrder(): submits commands from the caller's iterable and yields results to the caller's
 * loop. Reads commands while the window has room. The window has as many places as concurrency plus lookahead. A
 * command leaves the window when the caller has read the command's result.
 */
final class Run implements PendingCommandOwner, InputConsumer
{
    /** Maximum nanoseconds for which the caller's loop gets results before the event loop runs again. */
    private const SLICE_NANOSECONDS = 1_000_000;

    /** The lookahead is 0 while the commands in the window and their inputs have at least this number of bytes. */
    private const MAX_LOOKAHEAD_BYTES = 16 << 20;

    /** @var array<int, PendingCommand> pending commands, by id */
    private array $commands = [];

    /** @var array<int, int> position of each pending command in the input, starting at 0, by id */
    private array $numbers = [];

    /**
     * Results that the caller has not read. For runInOrder(), the key is the number of the command in the input; for
     * run(), results are numbered as they arrive. Null for a command without a result.
     *
     * @var array<int, CommandResult|null>
     */
    private array $results = [];
    private int $nextNumber = 0;

    private readonly InputPump $input;
    private readonly int $lane;
    private bool $halted = false;

    private bool $abandoned = false;

    private int $readCount = 0;

    private int $endedCount = 0;

    /** Number and bytes of the commands in the window. */
    private int $unreadCount = 0;
    private int $unreadBytes = 0;

    private int $succeeded = 0;
    private int $failed = 0;

    /** Time of the event loop's last turn that this run waited for, in nanoseconds of {@see hrtime()}. */
    private int $lastLoopTurn = 0;

    private readonly Condition $changed;

    /** @param iterable<mixed, mixed> $commands each value is checked to be a {@see Command} when it is read */
    public function __construct(
        private readonly CommandDispatcher $dispatcher,
        iterable $commands,
        private readonly bool $inOrder,
        private readonly ?Cancellation $cancellation,
    ) {
        $this->changed = new Condition();
        $this->input = new InputPump($this, $commands);
        // The lane is opened last, because the dispatcher may call the logger. If the logger uses the pool, the pool
        // may call methods of this object, and these methods need the other properties.
        $this->lane = $dispatcher->open($this);
    }

    /**
     * @param array<int, PendingCommand> $commands by id
     *
     * @return array<int, PendingCommand> commands of run() and runInOrder(), in the order of submission
     */
    public static function select(array $commands): array
    {
        $ofRuns = array_filter($commands, static fn(PendingCommand $pending): bool => $pending->owner instanceof self);
        ksort($ofRuns);

        return $ofRuns;
    }

    /** @return \Generator<mixed, CommandResult, mixed, RunSummary> cancels all commands if the caller stops reading */
    public function results(): \Generator
    {
        $subscription = $this->cancellation?->subscribe(fn(CancelledException $cancelled) => $this->fail($cancelled));
        try {
            $this->cancellation?->throwIfRequested();
            FiberSwitch::ensurePossible();
            while (($result = $this->nextResult()) !== null) {
                yield $result->key => $result;
                $this->unreadBytes -= self::sizeOf($result->command);
                --$this->unreadCount;
            }

            return new RunSummary($this->succeeded, $this->failed, $this->halted);
        } finally {
            $this->abandoned = true;
            $this->dispatcher->cancel($this->commands);
            $this->input->release();
            $this->results = []; // freed now, because a running read of the input may keep this object in memory
            $this->cancellation?->unsubscribe((string) $subscription);
        }
    }

    public function cancellation(): ?Cancellation
    {
        return $this->cancellation;
    }

    public function finished(PendingCommand $pending, CommandResult $result): void
    {
        if ($this->abandoned) {
            unset($this->commands[$pending->id]);

            return;
        }
        $result->succeeded() ? ++$this->succeeded : ++$this->failed;
        $this->settle($pending, $result);
        $this->checkHalt();
    }

    public function close(): void
    {
        $this->input->close(LauncherException::closedBeforeInputEnd());
        $this->changed->notify();
    }

    public function cancelWaiting(): void
    {
        $this->input->stop();
        foreach ($this->commands as $pending) {
            $this->dispatcher->withdraw($pending);
        }
        $this->dispatcher->backend->flush();
        $this->changed->notify();
    }

    public function failed(PendingCommand $pending, \Throwable $reason): void
    {
        $this->unreadBytes -= self::sizeOf($pending->command);
        --$this->unreadCount;
        $this->settle($pending, null);
        $this->fail($reason);
    }

    public function room(): int
    {
        return $this->availableWindow() > 0 ? 1 : 0;
    }

    /** @throws \ValueError for a value that is not a command */
    public function onValues(array $keys, array $values): void
    {
        [$command] = $values;
        if (!$command instanceof Command) {
            throw new \ValueError(\sprintf(
                'The input of a pool must yield %s, not %s%s; write Command::of($program, ...$arguments), or'
                    . ' Command::shell($line) for a line of a shell',
                Command::class,
                get_debug_type($command),
                \is_scalar($keys[0]) ? ' (key ' . var_export($keys[0], true) . ')' : '',
            ));
        }
        $pending = $this->dispatcher->submit($this->lane, $keys[0], $command, $this);
        $this->commands[$pending->id] = $pending;
        $this->numbers[$pending->id] = $this->readCount++;
        $this->unreadBytes += self::sizeOf($command);
        ++$this->unreadCount;
        // Commands for free slots are sent immediately, because the input may block. Other commands are sent together.
        $hasFreeSlot = \count($this->commands) <= $this->dispatcher->concurrency;
        if ($hasFreeSlot || $this->dispatcher->backend->unsentBytes() > 1 << 15) {
            $this->dispatcher->backend->flush();
        }
    }

    public function onSuspended(): void
    {
        $this->dispatcher->backend->flush();
    }

    public function onPaused(): void
    {
        $this->dispatcher->backend->flush();
        if ($this->input->isOver) {
            $this->changed->notify();
        }
    }

    /** Returns the next result. After the last one, returns null, or throws the failure that ended the run. */
    private function nextResult(): ?CommandResult
    {
        while (true) {
            $now = hrtime(true);
            if (\array_key_exists($this->nextNumber, $this->results)) {
                if ($now - $this->lastLoopTurn < self::SLICE_NANOSECONDS) {
                    $result = $this->results[$this->nextNumber];
                    unset($this->results[$this->nextNumber++]);
                    if ($result !== null) {
                        return $result;
                    }
                    continue;
                }
                // The run's last wait was SLICE_NANOSECONDS ago, so the event loop gets a turn before the next result.
                $this->lastLoopTurn = $now;
                $this->pullSoon();
                LoopTurn::await();

                continue;
            }
            // A stopped input is over, even if a read of it is still suspended. The run does not wait for that read.
            if ($this->commands === [] && $this->input->isOver) {
                return $this->input->failure === null ? null : throw $this->input->failure;
            }
            $this->pullSoon();
            $this->changed->wait();
            $this->lastLoopTurn = hrtime(true);
        }
    }

    private function settle(PendingCommand $pending, ?CommandResult $result): void
    {
        $number = $this->numbers[$pending->id];
        unset($this->commands[$pending->id], $this->numbers[$pending->id]);
        $this->results[$this->inOrder ? $number : $this->endedCount++] = $result;
        $this->changed->notify();
    }

    /** Reads more of the input if the free part of the window is larger than half of the lookahead. */
    private function pullSoon(): void
    {
        if ($this->availableWindow() > intdiv($this->lookahead(), 2)) {
            $this->input->pullSoon();
        }
    }

    private function availableWindow(): int
    {
        return $this->dispatcher->concurrency + $this->lookahead() - $this->unreadCount;
    }

    /**
     * Returns the lookahead: 0 with a halt policy, while the commands have too many bytes, or while the outputs have
     * too many files. With a lookahead of 0, the run still reads commands for free slots. Otherwise, a caller that
     * keeps all results, and with them their files, would wait forever.
     */
    private function lookahead(): int
    {
        return $this->dispatcher->options->halt === null
            && $this->unreadBytes < self::MAX_LOOKAHEAD_BYTES
            && !$this->dispatcher->store->isFull()
            ? $this->dispatcher->options->lookahead
            : 0;
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
        if ($halt->cancelsRunning) {
            $this->input->stop();
            $this->dispatcher->cancel($this->commands);
        } else {
            $this->cancelWaiting();
        }
    }

    /** Ends the input, and cancels all pending commands. The caller gets the reason after all results. */
    private function fail(\Throwable $reason): void
    {
        $this->input->fail($reason);
        $this->dispatcher->cancel($this->commands);
        $this->changed->notify();
    }
}
