<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CommandTransport;
use Spindle\Internal\Launcher\Process\WaitingJobs;
use Spindle\LauncherException;

/** Passes up to `$concurrency` commands at a time to a transport. The callers of the pool take turns. */
final class TransportBackend implements CommandBackend
{
    /** @var \WeakReference<AttemptEvents> */
    private readonly \WeakReference $events;

    /** @var WaitingJobs<PendingCommand> */
    private readonly WaitingJobs $waiting;

    /**
     * @var array<int, array{PendingCommand, DeferredCancellation, DeferredCancellation}>
     *        commands that the transport has, by id; then the arguments `$withdrawal` and `$cancellation` of the
     *        call of {@see CommandTransport::execute()}
     */
    private array $sent = [];

    /** @var array<int, Future<mixed>> calls of the transport that have not returned, by the id of the command */
    private array $calls = [];

    private bool $isPaused = false;

    /** Id of the process that submitted the commands. A fork must neither start nor cancel the commands. */
    private int $ownerPid = 0;

    /** @throws \ValueError when the concurrency is too high for a transport */
    public function __construct(
        private readonly CommandTransport $transport,
        private int $concurrency,
        AttemptEvents $events,
    ) {
        self::check($concurrency);
        $this->events = \WeakReference::create($events);
        $this->waiting = new WaitingJobs();
    }

    public function prepare(): void
    {
        if ($this->isInFork() && $this->commands() !== []) {
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
        if ($this->isInFork()) {
            throw LauncherException::forked([$pending->key]);
        }
        $pending->portable = PortableCommand::encode($pending->command);
        $this->waiting->add($pending);
        $this->fillSlots();
    }

    public function cancel(PendingCommand $pending): void
    {
        if ($this->leaveToParent()) {
            return;
        }
        [, , $cancellation] = $this->sent[$pending->id] ?? [null, null, null];
        $cancellation === null ? $this->cancelWaiting($pending) : $cancellation->cancel();
    }

    public function withdraw(PendingCommand $pending): void
    {
        if ($this->leaveToParent()) {
            return;
        }
        [, $withdrawal] = $this->sent[$pending->id] ?? [null, null];
        $withdrawal === null ? $this->cancelWaiting($pending) : $withdrawal->cancel();
    }

    public function unsentBytes(): int
    {
        return 0;
    }

    public function flush(): void {}

    public function commands(): array
    {
        return $this->running() + $this->waiting->all();
    }

    public function running(): array
    {
        return array_map(static fn(array $sent): PendingCommand => $sent[0], $this->sent);
    }

    public function setPaused(bool $isPaused): void
    {
        $this->isPaused = $isPaused;
        if (!$isPaused && !$this->leaveToParent()) {
            $this->fillSlots();
        }
    }

    /** @throws \ValueError when the concurrency is too high for a transport */
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
        return CommandTransport::MAX_CONCURRENCY;
    }

    public function close(): void
    {
        $sent = $this->isInFork() ? [] : $this->sent;
        $this->sent = [];
        $this->waiting->clear();
        foreach ($sent as [, , $cancellation]) {
            $cancellation->cancel();
        }
    }

    public function awaitEnd(): void
    {
        foreach ($this->isInFork() ? [] : $this->calls as $future) {
            FiberSwitch::awaitIfPossible($future);
        }
    }

    private static function check(int $concurrency): void
    {
        if ($concurrency > CommandTransport::MAX_CONCURRENCY) {
            throw new \ValueError(
                "The concurrency of a pool with a transport must be at most 10,000, not {$concurrency}",
            );
        }
    }

    private function isInFork(): bool
    {
        return $this->ownerPid !== getmypid();
    }

    /** Returns whether this process is a fork. In a fork, fails the copied commands. The parent's commands continue. */
    private function leaveToParent(): bool
    {
        if (!$this->isInFork()) {
            return false;
        }
        $commands = $this->commands();
        $this->sent = $this->calls = [];
        $this->waiting->clear();
        $this->events->get()?->onLost($commands, LauncherException::forked(...));

        return true;
    }

    private function fillSlots(): void
    {
        while (!$this->isPaused && !$this->waiting->isEmpty() && \count($this->sent) < $this->concurrency) {
            $this->sendOne($this->waiting->next());
        }
    }

    private function sendOne(PendingCommand $pending): void
    {
        [$withdrawal, $cancellation] = [new DeferredCancellation(), new DeferredCancellation()];
        $this->sent[$pending->id] = [$pending, $withdrawal, $cancellation];
        $this->calls[$pending->id] = \Amp\async(function () use ($pending, $withdrawal, $cancellation): void {
            [$command, $pending->portable] = [$pending->portable, '']; // frees memory; a retry encodes it again
            try {
                $outcome = $this->transport->execute(
                    $command,
                    $withdrawal->getCancellation(),
                    new CommandCancellation($cancellation->getCancellation(), $pending->owner->cancellation()),
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

    /** @param \Closure(): void $notify reports the outcome; not called after {@see close()} */
    private function callReturned(PendingCommand $pending, \Closure $notify): void
    {
        if ($this->leaveToParent()) {
            return;
        }
        unset($this->calls[$pending->id]);
        if (isset($this->sent[$pending->id])) {
            $notify();
        }
    }

    private function cancelWaiting(PendingCommand $pending): void
    {
        if ($this->waiting->remove($pending->id)) {
            $this->finish($pending, ResultFactory::cancelledBeforeStart($pending));
        }
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
        unset($this->sent[$pending->id]);
        $this->fillSlots();
    }
}
