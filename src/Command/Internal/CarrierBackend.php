<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Internal\CommandCarrier;
use Spindle\LauncherException;

/** Passes commands to a carrier, at most `$concurrency` at once. Others wait here. Slots go to the lanes in turn. */
final class CarrierBackend implements CommandBackend
{
    /** @var \WeakReference<AttemptEvents> */
    private readonly \WeakReference $events;

    /** @var array<int, non-empty-array<int, array{PendingCommand, string}>> command and its encoding, by lane and id */
    private array $waiting = [];

    /**
     * @var array<int, array{PendingCommand, DeferredCancellation, DeferredCancellation}>
     *        commands that the carrier has, by id, each with the `$withdrawal` and the `$cancellation` of
     *        {@see CommandCarrier::carry()}
     */
    private array $carried = [];

    /** @var array<int, Future<mixed>> calls of the carrier that have not returned, by the id of the command */
    private array $calls = [];

    private bool $isPaused = false;

    /** Id of the process that submitted the commands. A fork must neither start nor cancel them. */
    private int $ownerPid = 0;

    /** @throws \ValueError when the concurrency is too high for a carrier */
    public function __construct(
        private readonly CommandCarrier $carrier,
        private int $concurrency,
        AttemptEvents $events,
    ) {
        self::check($concurrency);
        $this->events = \WeakReference::create($events);
    }

    public function prepare(): void
    {
        if ($this->isFork() && $this->commands() !== []) {
            throw LauncherException::forked();
        }
        $this->ownerPid = (int) getmypid();
    }

    /**
     * @throws LauncherException in a fork, for a command of the parent process
     * @throws \ValueError       when the command can't be encoded as bytes
     */
    public function assign(PendingCommand $pending): void
    {
        if ($this->isFork()) {
            throw LauncherException::forked([$pending->key]);
        }
        $this->waiting[$pending->lane][$pending->id] = [$pending, PortableCommand::encode($pending->command)];
        $this->fillSlots();
    }

    public function cancel(PendingCommand $pending): void
    {
        if ($this->leaveToParent()) {
            return;
        }
        [, , $cancellation] = $this->carried[$pending->id] ?? [null, null, null];
        $cancellation === null ? $this->cancelWaiting($pending) : $cancellation->cancel();
    }

    public function withdraw(PendingCommand $pending): void
    {
        if ($this->leaveToParent()) {
            return;
        }
        [, $withdrawal] = $this->carried[$pending->id] ?? [null, null];
        $withdrawal === null ? $this->cancelWaiting($pending) : $withdrawal->cancel();
    }

    public function unsentBytes(): int
    {
        return 0;
    }

    public function flush(): void {}

    public function commands(): array
    {
        $commands = $this->running();
        foreach ($this->waiting as $lane) {
            $commands += array_map(static fn(array $waiting): PendingCommand => $waiting[0], $lane);
        }

        return $commands;
    }

    public function running(): array
    {
        return array_map(static fn(array $carried): PendingCommand => $carried[0], $this->carried);
    }

    public function pause(): void
    {
        $this->isPaused = true;
    }

    public function resume(): void
    {
        $this->isPaused = false;
        if (!$this->leaveToParent()) {
            $this->fillSlots();
        }
    }

    /** @throws \ValueError when the concurrency is too high for a carrier */
    public function resize(int $concurrency): void
    {
        self::check($concurrency);
        $this->concurrency = $concurrency;
        if (!$this->leaveToParent()) {
            $this->fillSlots();
        }
    }

    public function maxConcurrency(): int
    {
        return CommandCarrier::MAX_CONCURRENCY;
    }

    public function close(): void
    {
        $carried = $this->isFork() ? [] : $this->carried;
        $this->carried = $this->waiting = [];
        foreach ($carried as [, , $cancellation]) {
            $cancellation->cancel();
        }
    }

    public function awaitEnd(): void
    {
        foreach ($this->isFork() ? [] : $this->calls as $future) {
            $future->await();
        }
    }

    private static function check(int $concurrency): void
    {
        if ($concurrency > CommandCarrier::MAX_CONCURRENCY) {
            throw new \ValueError(
                "The concurrency of a pool with a carrier must be at most 10,000, not {$concurrency}",
            );
        }
    }

    private function isFork(): bool
    {
        return $this->ownerPid !== getmypid();
    }

    /** Returns whether this process is a fork. If so, fails its commands: the parent process gets their outcomes. */
    private function leaveToParent(): bool
    {
        if (!$this->isFork()) {
            return false;
        }
        $commands = $this->commands();
        $this->carried = $this->waiting = $this->calls = [];
        $this->events->get()?->onLost($commands, LauncherException::forked(...));

        return true;
    }

    private function fillSlots(): void
    {
        while (!$this->isPaused && $this->waiting !== [] && \count($this->carried) < $this->concurrency) {
            $lane = array_key_first($this->waiting);
            $commands = $this->waiting[$lane];
            [$pending, $command] = reset($commands);
            unset($this->waiting[$lane], $commands[$pending->id]);
            if ($commands !== []) {
                $this->waiting[$lane] = $commands; // the lane moves to the end
            }
            $this->carryOne($pending, $command);
        }
    }

    private function carryOne(PendingCommand $pending, string $command): void
    {
        [$withdrawal, $cancellation] = [new DeferredCancellation(), new DeferredCancellation()];
        $this->carried[$pending->id] = [$pending, $withdrawal, $cancellation];
        $this->calls[$pending->id] = \Amp\async(function () use ($pending, $command, $withdrawal, $cancellation): void {
            try {
                $outcome = $this->carrier->carry(
                    $command,
                    $withdrawal->getCancellation(),
                    $cancellation->getCancellation(),
                );
                $finish = fn() => $this->finish($pending, ResultFactory::ofOutcome($pending, $outcome));
                $this->callReturned($pending, $finish);
            } catch (CancelledException) {
                $finish = fn() => $this->finish($pending, ResultFactory::cancelledBeforeStart($pending));
                $this->callReturned($pending, $finish);
            } catch (\Throwable $failure) {
                $this->callReturned($pending, fn() => $this->lose($pending, $failure));
            }
        });
    }

    /** @param \Closure(): void $notify reports the outcome; not called after the pool was closed */
    private function callReturned(PendingCommand $pending, \Closure $notify): void
    {
        if ($this->leaveToParent()) {
            return;
        }
        unset($this->calls[$pending->id]);
        if (isset($this->carried[$pending->id])) {
            $notify();
        }
    }

    private function cancelWaiting(PendingCommand $pending): void
    {
        $commands = $this->waiting[$pending->lane] ?? [];
        if (!isset($commands[$pending->id])) {
            return;
        }
        unset($commands[$pending->id]);
        if ($commands === []) {
            unset($this->waiting[$pending->lane]);
        } else {
            $this->waiting[$pending->lane] = $commands;
        }
        $this->finish($pending, ResultFactory::cancelledBeforeStart($pending));
    }

    private function finish(PendingCommand $pending, CommandResult $result): void
    {
        $this->release($pending);
        $this->events->get()?->onEnded($pending, $result);
    }

    private function lose(PendingCommand $pending, \Throwable $reason): void
    {
        $this->release($pending);
        $this->events->get()?->onLost([$pending->id => $pending], static fn(): \Throwable => $reason);
    }

    private function release(PendingCommand $pending): void
    {
        unset($this->carried[$pending->id]);
        $this->fillSlots();
    }
}
