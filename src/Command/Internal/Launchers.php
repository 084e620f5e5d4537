<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\CpuCount;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\ProcessCredentials;
use Spindle\LauncherException;

/**
 * The launchers of one pool, which start processes in parallel (docs/decisions/0005-several-launchers.md).
 * Each launcher has a share of the slots. When it has free slots, waiting commands of other launchers move to it.
 */
final class Launchers implements CommandBackend
{
    /** A pool has one launcher per COMMANDS_PER_LAUNCHER slots: at least 1, at most MAX_LAUNCHERS or one per CPU. */
    private const COMMANDS_PER_LAUNCHER = 4;
    private const MAX_LAUNCHERS = 4;

    /** Maximum deaths per launcher since the last end of a command. After more, commands of dead launchers fail. */
    private const MAX_DEATHS_PER_LAUNCHER = 3;

    /** The same for failed starts within the window. A start has failed if the launcher died before it was ready. */
    private const MAX_FAILED_STARTS = 5;
    private const START_WINDOW_NANOSECONDS = 10_000_000_000;

    /** @var list<Launcher> */
    private array $launchers = [];

    /** @var list<Launcher> launchers with former credentials of this process; each is closed after its last command */
    private array $retired = [];

    /** Credentials of this process when the current launchers were started. */
    private string $credentials = '';

    /** Number of launchers that the pool should have; 0 before the first start. It grows with the concurrency. */
    private int $targetCount = 0;

    /** Number of launchers that have died since the last end of a command. */
    private int $deaths = 0;

    /** @var list<int|float> times of the latest failed starts, in nanoseconds of the monotonic clock */
    private array $failedStarts = [];

    /** Number of commands that each launcher has descriptors for; null until the first launcher is ready. */
    private ?int $capacity = null;

    /** How launchers start processes: posix_spawn or proc_open; '' until the first launcher is ready. */
    private string $startMethod = '';

    /** Fibers in {@see capacity()}. */
    private readonly FiberQueue $waiting;

    /**
     * The parameters after `$log` are those of {@see Launcher}.
     *
     * @param \Closure(Launcher, int, int, string, int, int): void $onFrame
     * @param \Closure(Launcher, string): void                     $onDeath
     * @param \Closure(Launcher): void                             $onFork
     */
    public function __construct(
        private readonly CommandPoolOptions $options,
        private readonly StepLog $log,
        private readonly string $temporaryFilePrefix,
        private readonly \Closure $onFrame,
        private readonly \Closure $onDeath,
        private readonly \Closure $onFork,
    ) {
        $this->waiting = new FiberQueue();
    }

    /**
     * Starts missing launchers, also in place of idle launchers that have died unnoticed.
     *
     * @throws LauncherException when a launcher can't be started, or when this process is a fork
     */
    public function prepare(int $concurrency): void
    {
        foreach ($this->all() as $launcher) {
            if (!$launcher->isOurs()) {
                throw LauncherException::forked();
            }
            if ($launcher->commands === []) {
                $launcher->read();
            }
        }
        $this->start($concurrency);
    }

    /**
     * Starts missing launchers, and replaces launchers whose credentials are no longer those of this process.
     *
     * @throws LauncherException when a launcher can't be started
     */
    public function start(int $concurrency): void
    {
        if ($this->targetCount === 0) {
            $this->targetCount = self::countFor($concurrency);
        }
        $credentials = ProcessCredentials::current();
        if ($credentials !== $this->credentials) {
            $this->retire();
            $this->credentials = $credentials;
        }
        if (\count($this->launchers) === $this->targetCount) {
            return;
        }
        while (\count($this->launchers) < $this->targetCount) {
            $this->launchers[] = new Launcher(
                $this->options,
                $this->temporaryFilePrefix,
                $this->onFrame,
                $this->onDeath,
                $this->onFork,
            );
            $this->log->write('A launcher was started');
        }
        $this->sendShares($concurrency);
    }

    /**
     * Assigns a command to the least busy launcher. The command is sent with the next {@see flush()}, or earlier.
     *
     * @throws LauncherException when a missing launcher can't be started, or when the credentials of this process have
     *                           changed since the first attempt
     */
    public function assign(PendingCommand $pending, int $concurrency): void
    {
        $this->start($concurrency);
        if (($pending->credentials ??= $this->credentials) !== $this->credentials) {
            throw LauncherException::otherCredentials([$pending->key]);
        }
        self::handOver($pending, $this->leastBusy());
    }

    /**
     * Assigns a command again, after its launcher has returned it unstarted. A command of a retired launcher goes back
     * to that launcher, because only that launcher has the credentials of the command.
     *
     * @throws LauncherException see {@see assign()}
     */
    public function move(PendingCommand $pending, int $concurrency): void
    {
        $launcher = $pending->launcher;
        $launcher?->remove($pending);
        $this->start($concurrency);
        if ($launcher !== null && \in_array($launcher, $this->retired, true)) {
            self::handOver($pending, $launcher);
        } else {
            $this->assign($pending, $concurrency);
        }
    }

    public function cancel(PendingCommand $pending): void
    {
        $pending->launcher?->queue(LauncherProtocol::frame(LauncherProtocol::CANCEL, $pending->id));
    }

    public function withdraw(PendingCommand $pending): void
    {
        $pending->launcher?->queue(LauncherProtocol::frame(LauncherProtocol::WITHDRAW, $pending->id));
    }

    public function unsentBytes(): int
    {
        $bytes = 0;
        foreach ($this->all() as $launcher) {
            $bytes += $launcher->unsentBytes();
        }

        return $bytes;
    }

    public function flush(): void
    {
        foreach ($this->all() as $launcher) {
            $launcher->send();
        }
    }

    public function ready(Launcher $launcher, string $payload): void
    {
        $launcher->isReady = true;
        /** @var array{pid: int, capacity: int} $ready */
        $ready = unpack('Vpid/Vcapacity', $payload);
        $this->capacity = $ready['capacity'];
        $this->startMethod = substr($payload, 8);
        $this->wake();
        $this->log->write(
            'The launcher {pid} is ready and uses {startMethod}',
            ['pid' => $ready['pid'], 'startMethod' => $this->startMethod],
        );
    }

    public function tooManyException(int $concurrency): LauncherException
    {
        $capacity = (int) $this->capacity * $this->targetCount;

        return LauncherException::tooManyAtOnce($concurrency, $capacity, $this->startMethod);
    }

    public function release(PendingCommand $pending): void
    {
        $this->deaths = 0;
        $launcher = $pending->launcher;
        $launcher?->remove($pending);
        $isIdle = $launcher !== null && $launcher->commands === [];
        if ($isIdle && $this->retired !== [] && \in_array($launcher, $this->retired, true)) {
            $this->remove($launcher, null);
            $launcher->close();
        }
        $this->balance();
    }

    /** Records that a command has started. If it was asked back, another waiting command is asked back instead. */
    public function started(PendingCommand $pending): void
    {
        $pending->launcher?->started($pending);
        $this->balance();
    }

    /** Takes back a command that its launcher could not start for lack of descriptors or processes. */
    public function takeBackExhausted(PendingCommand $pending): void
    {
        $launcher = $pending->launcher;
        $launcher?->remove($pending);
        if ($launcher !== null) {
            $launcher->exhausted = true;
        }
    }

    /** Returns whether all launchers that have commands are exhausted. Then probably no command is running. */
    public function areExhausted(): bool
    {
        foreach ($this->all() as $launcher) {
            if (!$launcher->exhausted && $launcher->commands !== []) {
                return false;
            }
        }

        return true;
    }

    /** Removes a launcher. If `$why` is null, fibers in {@see capacity()} wait for another launcher. */
    public function remove(Launcher $launcher, ?LauncherException $why): void
    {
        $isOther = static fn(Launcher $other): bool => $other !== $launcher;
        $this->launchers = array_values(array_filter($this->launchers, $isOther));
        $this->retired = array_values(array_filter($this->retired, $isOther));
        $this->wake($why);
    }

    /** @return bool whether other launchers should get its commands; false after too many deaths */
    public function died(Launcher $launcher, string $how): bool
    {
        $this->log->write('A launcher died: {how}', ['how' => $how]);
        $isReplaceable = ++$this->deaths <= self::MAX_DEATHS_PER_LAUNCHER * $this->targetCount
            && ($launcher->isReady || $this->recordFailedStart());
        $this->remove($launcher, $isReplaceable ? null : LauncherException::died($how, []));

        return $isReplaceable;
    }

    /** @return array<int, PendingCommand> all pending commands, by id */
    public function commands(): array
    {
        $commands = [];
        foreach ($this->all() as $launcher) {
            $commands += $launcher->commands;
        }

        return $commands;
    }

    /**
     * Returns the first commands of each launcher, up to its share. With several lanes this is an estimate, because a
     * launcher serves the lanes in turn.
     */
    public function running(): array
    {
        $running = [];
        foreach ($this->all() as $launcher) {
            $running += \array_slice($launcher->commands, 0, $launcher->share, true);
        }

        return $running;
    }

    /**
     * Returns how many commands all launchers together have descriptors for. Suspends until one launcher is ready.
     *
     * @throws LauncherException when a launcher can't be started, or when launchers have died too often
     */
    public function capacity(int $concurrency): int
    {
        $this->start($concurrency);
        while ($this->capacity === null) {
            $this->start($concurrency); // replaces a launcher that has died before it was ready
            $launcher = $this->launchers[0];
            $launcher->keepLoop();
            try {
                $this->waiting->wait();
            } finally {
                $launcher->releaseLoop();
            }
        }

        return (int) $this->capacity * $this->targetCount;
    }

    /** @throws LauncherException when the descriptor limit is too low, or for a reason of {@see capacity()} */
    public function resize(int $concurrency, int $previousConcurrency): void
    {
        if ($this->launchers !== []) {
            $this->capacity($previousConcurrency);
        }
        $targetCount = max($this->targetCount, self::countFor($concurrency));
        if ($this->capacity !== null && $concurrency > $this->capacity * $targetCount) {
            throw LauncherException::tooManyAtOnce($concurrency, $this->capacity * $targetCount, $this->startMethod);
        }
        if ($this->launchers !== []) {
            $this->targetCount = $targetCount;
            $this->start($concurrency);
            $this->sendShares($concurrency);
            $this->balance();
        }
    }

    /** Ends all launchers in parallel. Blocks until they have exited. */
    public function close(): void
    {
        $launchers = $this->all();
        $this->launchers = $this->retired = [];
        foreach ($launchers as $launcher) {
            $launcher->requestEnd();
        }
        foreach ($launchers as $launcher) {
            $launcher->close();
        }
        $this->wake(LauncherException::killed([]));
    }

    /** Does nothing, because {@see close()} has waited. */
    public function awaitEnd(): void {}

    /** @return list<Launcher> */
    private function all(): array
    {
        return $this->retired === [] ? $this->launchers : [...$this->launchers, ...$this->retired];
    }

    private static function handOver(PendingCommand $pending, Launcher $launcher): void
    {
        $launcher->add($pending);
        $pending->prepareStreams();
        $launcher->useEnvironment($pending->environment);
        $launcher->queue(CommandRequest::runFrame($pending));
    }

    /** Closes idle launchers, and retires launchers with commands. {@see start()} starts others in their place. */
    private function retire(): void
    {
        foreach ($this->launchers as $launcher) {
            if ($launcher->commands === []) {
                $launcher->close();
            } else {
                $launcher->send();
                $this->retired[] = $launcher;
            }
        }
        $this->launchers = [];
        $this->wake();
    }

    /** @return bool false after too many failed starts */
    private function recordFailedStart(): bool
    {
        $now = hrtime(true);
        $this->failedStarts[] = $now;
        $this->failedStarts = array_values(array_filter(
            $this->failedStarts,
            static fn(int|float $at): bool => $at > $now - self::START_WINDOW_NANOSECONDS,
        ));

        return \count($this->failedStarts) <= self::MAX_FAILED_STARTS * $this->targetCount;
    }

    private static function countFor(int $concurrency): int
    {
        return max(
            1,
            min(self::MAX_LAUNCHERS, (new CpuCount())->usable(), intdiv($concurrency, self::COMMANDS_PER_LAUNCHER)),
        );
    }

    private function sendShares(int $concurrency): void
    {
        $count = \count($this->launchers);
        $largest = intdiv($concurrency + $count - 1, $count);
        foreach ($this->launchers as $i => $launcher) {
            $launcher->share = intdiv($concurrency + $i, $count);
            // Each launcher compares the largest share with its capacity, so that all of them accept or all refuse.
            $launcher->send(LauncherProtocol::frame(
                LauncherProtocol::CONFIGURE,
                0,
                pack('VVeC', $launcher->share, $largest, $this->options->grace, (int) $this->options->redispatch),
            ));
        }
    }

    /** Returns the launcher with the fewest commands beyond its share. {@see resize()} can cause shares of 0. */
    private function leastBusy(): Launcher
    {
        $leastBusy = null;
        foreach ($this->launchers as $launcher) {
            if ($launcher->share > 0 && ($leastBusy === null || $launcher->excess() < $leastBusy->excess())) {
                $leastBusy = $launcher;
            }
        }

        return $leastBusy ?? throw new \LogicException('No launcher has a slot');
    }

    /** Resumes the fibers that wait in {@see capacity()}, with an exception if there is one. */
    private function wake(?LauncherException $why = null): void
    {
        $why === null ? $this->waiting->wakeAll() : $this->waiting->failAll($why);
    }

    /** For each launcher with free slots, asks other launchers to return waiting commands. */
    private function balance(): void
    {
        foreach ($this->launchers as $idle) {
            if ($idle->excess() < 0 && \count($this->launchers) > 1) {
                $this->askBackFor($idle);
            }
        }
    }

    private function askBackFor(Launcher $idle): void
    {
        $free = -$idle->excess();
        foreach ($this->launchers as $launcher) {
            $free -= $launcher->movingCount(); // commands that will be returned
        }
        foreach ($this->launchers as $busy) {
            // Asks for half of the waiting commands, so that both launchers have about the same amount of work.
            for ($half = intdiv($busy->waitingCount() + 1, 2); $free > 0 && $half > 0 && $busy->askBack(); --$half) {
                --$free;
            }
            $busy->send();
        }
    }
}
