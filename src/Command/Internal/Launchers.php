<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\CpuCount;
use Spindle\Internal\Fibers;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\ProcessCredentials;
use Spindle\LauncherException;

/**
 * The launchers of one pool, which start processes in parallel (docs/decisions/0005-several-launchers.md).
 *
 * Each launcher has a share of the slots. When it has free slots, waiting commands of other launchers move to it.
 */
final class Launchers implements CommandBackend
{
    /**
     * A pool has one launcher for each COMMANDS_PER_LAUNCHER commands at once, limited by MAX_LAUNCHERS and by the
     * number of usable CPUs.
     */
    private const COMMANDS_PER_LAUNCHER = 4;
    private const MAX_LAUNCHERS = 4;

    /** Maximum deaths per launcher without a finished command in between. After more, no launcher is started. */
    private const MAX_DEATHS_PER_LAUNCHER = 3;

    /** Maximum deaths of launchers that never were ready, per launcher; and the period that counts, in nanoseconds. */
    private const MAX_FAILED_STARTS = 5;
    private const START_WINDOW_NANOSECONDS = 10_000_000_000;

    /** @var list<Launcher> */
    private array $launchers = [];

    /** @var list<Launcher> with former credentials of this process; each ends when its commands have ended */
    private array $retired = [];

    /** Credentials of the launchers. */
    private string $credentials = '';

    /** Number of launchers, set when the first one is started. It grows with the pool. */
    private int $targetCount = 0;

    /** Deaths of launchers since a command finished. */
    private int $deaths = 0;

    /** @var list<int|float> times of the last failed starts, on the monotonic clock */
    private array $failedStarts = [];

    /** How many commands each launcher has descriptors for, and how it starts them; null and '' until one is ready. */
    private ?int $capacity = null;
    private string $startMethod = '';

    /** @var array<int, Suspension<mixed>> fibers that wait for the capacity */
    private array $waiting = [];

    /**
     * @param string                                               $files prefix of paths of temporary files
     * @param \Closure(Launcher, int, int, string, int, int): void $frame see {@see Launcher}
     * @param \Closure(Launcher, string): void                     $died  see {@see Launcher}
     * @param \Closure(Launcher): void                             $onFork  see {@see Launcher}
     */
    public function __construct(
        private readonly CommandPoolOptions $options,
        private readonly StepLog $log,
        private readonly string $files,
        private readonly \Closure $frame,
        private readonly \Closure $died,
        private readonly \Closure $onFork,
    ) {}

    /**
     * Replaces launchers that died while they had no command.
     *
     * @throws LauncherException
     */
    public function refresh(int $concurrency): void
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
     * Starts missing launchers, and replaces those with other credentials than this process has now.
     *
     * @throws LauncherException
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
            $this->launchers[] = new Launcher($this->options, $this->files, $this->frame, $this->died, $this->onFork);
            $this->log->write('A launcher was started');
        }
        $this->share($concurrency);
    }

    /**
     * Gives a command to the launcher where it waits least. It is sent by {@see flush()}, or earlier.
     *
     * @throws LauncherException when a missing launcher can't be started, or the credentials have changed since
     *                           submission
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
     * Gives a command that was asked back and returned to another launcher.
     *
     * @throws LauncherException see {@see assign()}
     */
    public function move(PendingCommand $pending, int $concurrency): void
    {
        $launcher = $pending->launcher;
        $launcher?->remove($pending);
        $this->start($concurrency);
        if ($launcher !== null && \in_array($launcher, $this->retired, true)) {
            self::handOver($pending, $launcher); // only this launcher has the command's credentials
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

    /** Bytes that were collected but not sent, or that launchers have not received. */
    public function unsent(): int
    {
        $bytes = 0;
        foreach ($this->all() as $launcher) {
            $bytes += $launcher->unsent();
        }

        return $bytes;
    }

    public function flush(): void
    {
        foreach ($this->all() as $launcher) {
            $launcher->send();
        }
    }

    /** Handles the message that a launcher sends when it is ready. */
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

    public function tooMany(int $concurrency): LauncherException
    {
        $capacity = (int) $this->capacity * $this->targetCount;

        return LauncherException::tooManyAtOnce($concurrency, $capacity, $this->startMethod);
    }

    /** Frees the slot of a command that has ended. */
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

    /** Notes that a command has started instead of being returned. Another waiting one may be asked back. */
    public function started(PendingCommand $pending): void
    {
        $pending->launcher?->started($pending);
        $this->balance();
    }

    /** Takes a command back, because the launcher has no descriptors or processes for it and will free none. */
    public function markExhausted(PendingCommand $pending): void
    {
        $launcher = $pending->launcher;
        $launcher?->remove($pending);
        if ($launcher !== null) {
            $launcher->exhausted = true;
        }
    }

    /** Returns whether no command runs, because descriptors or processes are missing. */
    public function areExhausted(): bool
    {
        foreach ($this->all() as $launcher) {
            if (!$launcher->exhausted && $launcher->commands !== []) {
                return false;
            }
        }

        return true;
    }

    /** Removes a launcher that died or failed. {@see capacity()} then throws the reason, or asks another launcher. */
    public function remove(Launcher $launcher, ?LauncherException $why): void
    {
        $isOther = static fn(Launcher $other): bool => $other !== $launcher;
        $this->launchers = array_values(array_filter($this->launchers, $isOther));
        $this->retired = array_values(array_filter($this->retired, $isOther));
        $this->wake($why);
    }

    /** @return bool whether it may be replaced */
    public function died(Launcher $launcher, string $how): bool
    {
        $this->log->write('A launcher died: {how}', ['how' => $how]);
        $isReplaceable = ++$this->deaths <= self::MAX_DEATHS_PER_LAUNCHER * $this->targetCount
            && ($launcher->isReady || $this->mayFailToStart());
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

    /** Returns the first commands of each launcher, because they are started in the order of their arrival. */
    public function running(): array
    {
        $running = [];
        foreach ($this->all() as $launcher) {
            $running += \array_slice($launcher->commands, 0, $launcher->share, true);
        }

        return $running;
    }

    /**
     * Returns how many commands the launchers have descriptors for together; waits until one is ready.
     *
     * @throws LauncherException when a launcher can't be started, or ends
     */
    public function capacity(int $concurrency): int
    {
        $this->start($concurrency);
        while ($this->capacity === null) { // a launcher that dies before it is ready is replaced
            $this->start($concurrency);
            $suspension = EventLoop::getSuspension();
            $id = spl_object_id($suspension);
            $this->waiting[$id] = $suspension;
            $launcher = $this->launchers[0];
            $launcher->keepLoop();
            try {
                Fibers::suspend($suspension);
            } finally {
                unset($this->waiting[$id]);
                $launcher->releaseLoop();
            }
        }

        return (int) $this->capacity * $this->targetCount;
    }

    /** @throws LauncherException when the descriptor limit is too low */
    public function resize(int $concurrency, int $before): void
    {
        if ($this->launchers !== []) {
            $this->capacity($before);
        }
        $targetCount = max($this->targetCount, self::countFor($concurrency));
        if ($this->capacity !== null && $concurrency > $this->capacity * $targetCount) {
            throw LauncherException::tooManyAtOnce($concurrency, $this->capacity * $targetCount, $this->startMethod);
        }
        if ($this->launchers !== []) {
            $this->targetCount = $targetCount;
            $this->start($concurrency);
            $this->share($concurrency);
            $this->balance();
        }
    }

    /** Ends all launchers in parallel and waits until they have ended. */
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
        $this->wake(LauncherException::closed([]));
    }

    public function awaitEnd(): void {}

    /** @return list<Launcher> */
    private function all(): array
    {
        return $this->retired === [] ? $this->launchers : [...$this->launchers, ...$this->retired];
    }

    private static function handOver(PendingCommand $pending, Launcher $launcher): void
    {
        $launcher->add($pending);
        $pending->connect();
        $launcher->useEnvironment($pending->environment);
        $launcher->queue(CommandRequest::run($pending));
    }

    /** Replaces all launchers. A launcher with commands ends when these have ended. */
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

    private function mayFailToStart(): bool
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

    /** Sends each launcher the number of commands that it may run. */
    private function share(int $concurrency): void
    {
        $count = \count($this->launchers);
        $largest = intdiv($concurrency + $count - 1, $count);
        foreach ($this->launchers as $i => $launcher) {
            $launcher->share = intdiv($concurrency + $i, $count);
            // All get the largest share as well, so that either all refuse it or none does.
            $launcher->send(LauncherProtocol::frame(
                LauncherProtocol::CONFIGURE,
                0,
                pack('VVeC', $launcher->share, $largest, $this->options->grace, (int) $this->options->redispatch),
            ));
        }
    }

    /** Returns the launcher where a command waits least. After {@see resize()}, some may have no slot. */
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

    /** Resumes the fibers that wait for {@see capacity()}. */
    private function wake(?LauncherException $why = null): void
    {
        $waiting = $this->waiting;
        $this->waiting = [];
        foreach ($waiting as $suspension) {
            $why === null ? $suspension->resume() : $suspension->throw($why);
        }
    }

    /** Asks waiting commands back for launchers with free slots. */
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
            $free -= $launcher->moving(); // commands on the way
        }
        foreach ($this->launchers as $busy) {
            // Half of the waiting commands, so that both launchers have the same amount of work.
            for ($half = intdiv($busy->waiting() + 1, 2); $free > 0 && $half > 0 && $busy->askBack(); --$half) {
                --$free;
            }
            $busy->send();
        }
    }
}
