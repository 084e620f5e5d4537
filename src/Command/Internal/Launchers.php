<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\CpuCount;
use Spindle\Internal\Launcher\ProcessCredentials;
use Spindle\LauncherException;

/**
 * Manages the launchers of one pool. A large pool has several launchers, which start processes in parallel
 * (docs/decisions/0005-several-launchers.md). Each launcher has a share of the slots. Waiting commands move to
 * launchers that have free slots. When the user, groups or root directory of this process change, launchers with
 * commands are retired: they get no new commands. {@see LauncherBackend} handles the frames that launchers send.
 */
final class Launchers
{
    /** A pool gets one launcher per this number of slots: at least 1, at most MAX_LAUNCHERS, at most one per CPU. */
    private const COMMANDS_PER_LAUNCHER = 4;
    public const MAX_LAUNCHERS = 4;

    /** Maximum deaths per launcher while no command ends. After more deaths, the commands of dead launchers fail. */
    private const MAX_DEATHS_PER_LAUNCHER = 3;

    /** Maximum failed starts per launcher in START_WINDOW_NANOSECONDS. After more, commands of dead launchers fail. */
    private const MAX_FAILED_STARTS_PER_LAUNCHER = 5;
    private const START_WINDOW_NANOSECONDS = 10_000_000_000;

    /** @var list<Launcher> */
    private array $launchers = [];

    /** @var list<Launcher> launchers with former credentials of this process; each is closed after its last command */
    private array $retired = [];

    /** Credentials ({@see ProcessCredentials}) of this process when the current launchers were started. */
    private string $credentials = '';

    /** Number of launchers that the pool should have; 0 before the first start. {@see resize()} only increases it. */
    private int $targetCount = 0;

    private bool $isPaused = false;

    private bool $isClosed = false;

    /** Number of launchers that have died since the last end of a command. */
    private int $deaths = 0;

    /** @var list<int|float> times of the latest failed starts (deaths before READY), in nanoseconds of hrtime() */
    private array $failedStarts = [];

    /** Number of commands for which a launcher has enough descriptors; null until the first launcher is ready. */
    private ?int $maxConcurrencyPerLauncher = null;

    /** Function with which launchers start processes: posix_spawn or proc_open; '' until a launcher is ready. */
    private string $startMethod = '';

    /** Fibers that wait in {@see maxConcurrency()}. */
    private readonly FiberQueue $waiting;

    /** @var \WeakReference<LauncherBackend> */
    private readonly \WeakReference $backend;

    public function __construct(
        private readonly CommandPoolOptions $options,
        private readonly ?StepLog $log,
        private readonly string $temporaryFilePrefix,
        LauncherBackend $backend,
    ) {
        $this->backend = \WeakReference::create($backend);
        $this->waiting = new FiberQueue();
    }

    /**
     * Starts missing launchers. Detects idle launchers that have died, and replaces these too.
     *
     * @throws LauncherException when a launcher can't be started, or when this process is a fork
     */
    public function prepare(int $concurrency): void
    {
        foreach ($this->all() as $launcher) {
            if (!$launcher->process->belongsToThisProcess()) {
                throw LauncherException::forked();
            }
            if ($launcher->commands === []) {
                $launcher->process->read();
            }
        }
        $this->start($concurrency);
    }

    /**
     * Starts missing launchers, and replaces launchers whose credentials differ from those of this process.
     *
     * @return string credentials of this process and of the current launchers
     *
     * @throws LauncherException when a launcher can't be started, or when the pool is closed, perhaps by the logger
     */
    public function start(int $concurrency): string
    {
        if ($this->isClosed) {
            throw LauncherException::closed();
        }
        if ($this->targetCount === 0) {
            $this->targetCount = self::countFor($concurrency);
        }
        $credentials = ProcessCredentials::current();
        if ($credentials !== $this->credentials) {
            $this->retire();
            $this->credentials = $credentials;
        }
        if (\count($this->launchers) === $this->targetCount) {
            return $credentials;
        }
        $missing = $this->targetCount - \count($this->launchers);
        for ($i = 0; $i < $missing; ++$i) {
            $this->launchers[] = new Launcher($this->options, $this->temporaryFilePrefix, $this->backend);
        }
        $this->sendShares($concurrency);
        $this->balance();
        for ($i = 0; $i < $missing; ++$i) {
            $this->log?->write('A launcher was started');
        }

        return $this->start($concurrency); // again, because the logger may have closed the pool, or killed a launcher
    }

    /** @return list<Launcher> current and retired launchers */
    public function all(): array
    {
        return $this->retired === [] ? $this->launchers : [...$this->launchers, ...$this->retired];
    }

    /** Returns the launcher with the fewest commands beyond its share. Ignores launchers with a share of 0. */
    public function leastBusy(): Launcher
    {
        $leastBusy = null;
        foreach ($this->launchers as $launcher) {
            if ($launcher->share > 0 && ($leastBusy === null || $launcher->excess() < $leastBusy->excess())) {
                $leastBusy = $launcher;
            }
        }

        return $leastBusy ?? throw new \LogicException('No launcher has a slot');
    }

    public function unsentBytes(): int
    {
        $bytes = 0;
        foreach ($this->all() as $launcher) {
            $bytes += $launcher->process->unsentBytes();
        }

        return $bytes;
    }

    public function flush(): void
    {
        foreach ($this->all() as $launcher) {
            $launcher->process->send();
        }
    }

    public function ready(Launcher $launcher, string $payload): void
    {
        $launcher->isReady = true;
        /** @var array{pid: int, maxConcurrency: int} $ready */
        $ready = unpack('Vpid/VmaxConcurrency', $payload);
        $this->maxConcurrencyPerLauncher = $ready['maxConcurrency'];
        $this->startMethod = substr($payload, 8);
        $this->wake();
        $this->log?->write(
            'The launcher {pid} is ready and uses {startMethod}',
            ['pid' => $ready['pid'], 'startMethod' => $this->startMethod],
        );
    }

    public function tooManyException(int $concurrency): LauncherException
    {
        $maxConcurrency = (int) $this->maxConcurrencyPerLauncher * $this->targetCount;

        return LauncherException::tooManyAtOnce($concurrency, $maxConcurrency, $this->startMethod);
    }

    /** Records that a command has started, so it can't move to another launcher. Another waiting command may move. */
    public function commandStarted(PendingCommand $pending): void
    {
        $pending->launcher?->started($pending);
        $this->balance();
    }

    /** Lets a waiting command move to the freed slot. Closes the ended command's launcher if it is retired and idle. */
    public function commandEnded(?Launcher $launcher): void
    {
        $this->deaths = 0;
        $this->closeIfUnneeded($launcher);
        $this->balance();
    }

    public function closeIfUnneeded(?Launcher $launcher): void
    {
        if ($launcher !== null && $launcher->commands === [] && $this->isRetired($launcher)) {
            $this->remove($launcher, null);
            $launcher->process->close();
        }
    }

    /** Returns whether this process had other credentials when the launcher was started. */
    public function isRetired(Launcher $launcher): bool
    {
        return $this->retired !== [] && \in_array($launcher, $this->retired, true);
    }

    /** Returns whether each launcher with waiting commands has reported that it runs none and can't start any. */
    public function areExhausted(): bool
    {
        return array_filter($this->all(), static fn(Launcher $one) => !$one->exhausted && $one->commands !== []) === [];
    }

    /** Removes a launcher. Fibers in {@see maxConcurrency()} fail with `$why`, or try again if `$why` is null. */
    public function remove(Launcher $launcher, ?LauncherException $why): void
    {
        $isOther = static fn(Launcher $other): bool => $other !== $launcher;
        $this->launchers = array_values(array_filter($this->launchers, $isOther));
        $this->retired = array_values(array_filter($this->retired, $isOther));
        $this->wake($why);
    }

    /** @return bool whether a new launcher may replace the dead one; false after too many deaths or failed starts */
    public function died(Launcher $launcher, string $how): bool
    {
        $mayDie = ++$this->deaths <= self::MAX_DEATHS_PER_LAUNCHER * $this->targetCount;
        $isReplaceable = $mayDie && ($launcher->isReady || $this->recordFailedStart());
        $failure = $launcher->isReady ? LauncherException::died($how, []) : LauncherException::neverReady($how, []);
        $this->remove($launcher, $isReplaceable ? null : $failure);
        $this->log?->write('A launcher died: {how}', ['how' => $how]);

        return $isReplaceable;
    }

    /**
     * Returns the largest concurrency that {@see resize()} accepts. Suspends until a launcher is ready.
     *
     * @throws LauncherException when a launcher can't be started, or when launchers have died too often
     */
    public function maxConcurrency(int $concurrency): int
    {
        $this->start($concurrency);
        while ($this->maxConcurrencyPerLauncher === null) {
            $this->start($concurrency); // replaces a launcher that has died before it was ready
            $launcher = $this->launchers[0];
            $launcher->process->keepLoop();
            try {
                $this->waiting->wait();
            } finally {
                $launcher->releaseLoop();
            }
        }

        return $this->largestConcurrency();
    }

    /** @throws LauncherException when the descriptor limit is too low, or when {@see maxConcurrency()} throws */
    public function resize(int $concurrency, int $previousConcurrency): void
    {
        if ($this->launchers !== []) {
            $this->maxConcurrency($previousConcurrency);
        }
        $perLauncher = $this->maxConcurrencyPerLauncher;
        if ($perLauncher !== null) {
            $largest = $this->largestConcurrency();
            if ($concurrency > $largest) {
                throw LauncherException::tooManyAtOnce($concurrency, $largest, $this->startMethod);
            }
            $needed = intdiv($concurrency + $perLauncher - 1, $perLauncher);
            $this->targetCount = max($this->targetCount, self::countFor($concurrency), $needed);
            $this->removeRefusing($perLauncher, $previousConcurrency);
        }
        if ($this->launchers !== []) {
            $this->start($concurrency);
            $this->sendShares($concurrency);
            $this->balance();
        }
    }

    public function setPaused(bool $isPaused): void
    {
        $isChanged = $this->isPaused !== $isPaused;
        $this->isPaused = $isPaused;
        foreach ($isChanged ? $this->all() : [] as $launcher) {
            $launcher->configure($launcher->share, $launcher->largestShare, $isPaused);
        }
    }

    /** Ends all launchers in parallel. Blocks until they have exited. */
    public function close(): void
    {
        $this->isClosed = true;
        $launchers = $this->all();
        $this->launchers = $this->retired = [];
        foreach ($launchers as $launcher) {
            $launcher->process->requestEnd();
        }
        foreach ($launchers as $launcher) {
            $launcher->process->close();
        }
        $this->wake(LauncherException::killed([]));
    }

    /** Closes idle launchers, and retires launchers with commands. {@see start()} starts new launchers. */
    private function retire(): void
    {
        foreach ($this->launchers as $launcher) {
            if ($launcher->commands === []) {
                $launcher->process->close();
            } else {
                $launcher->process->send();
                $this->retired[] = $launcher;
            }
        }
        $this->launchers = [];
        $this->wake();
    }

    /** Removes launchers that will answer the last CONFIGURE frame with REFUSED. Their new commands would fail. */
    private function removeRefusing(int $maxConcurrency, int $concurrency): void
    {
        foreach ($this->launchers as $launcher) {
            if ($launcher->largestShare > $maxConcurrency) {
                $this->backend->get()?->launcherFailed($launcher, $this->tooManyException($concurrency));
            }
        }
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

        return \count($this->failedStarts) <= self::MAX_FAILED_STARTS_PER_LAUNCHER * $this->targetCount;
    }

    private static function countFor(int $concurrency): int
    {
        return max(
            1,
            min(self::MAX_LAUNCHERS, (new CpuCount())->usable(), intdiv($concurrency, self::COMMANDS_PER_LAUNCHER)),
        );
    }

    private function largestConcurrency(): int
    {
        return (int) $this->maxConcurrencyPerLauncher * max($this->targetCount, self::countFor(\PHP_INT_MAX));
    }

    private function sendShares(int $concurrency): void
    {
        $count = \count($this->launchers);
        $largest = intdiv($concurrency + $count - 1, $count);
        foreach ($this->launchers as $i => $launcher) {
            $launcher->configure(intdiv($concurrency + $i, $count), $largest, $this->isPaused);
        }
    }

    /** Resumes the fibers that wait in {@see maxConcurrency()}, with `$why` if it is not null. */
    private function wake(?LauncherException $why = null): void
    {
        $why === null ? $this->waiting->wakeAll() : $this->waiting->failAll($why);
    }

    /** Withdraws waiting commands from launchers if other launchers have free slots for these commands. */
    private function balance(): void
    {
        foreach ($this->launchers as $launcher) {
            if ($launcher->excess() < 0 && \count($this->launchers) > 1) {
                $this->moveCommandsTo($launcher);
            }
        }
    }

    private function moveCommandsTo(Launcher $underused): void
    {
        $free = -$underused->excess();
        foreach ($this->launchers as $launcher) {
            $free -= $launcher->movingCount; // commands that are already moving will fill free slots
        }
        foreach ($this->launchers as $busy) {
            // Half of the waiting commands move, so that both launchers have about the same amount of work.
            $half = intdiv($busy->waitingCount() + 1, 2);
            while ($free > 0 && $half-- > 0 && $busy->withdrawLast()) {
                --$free;
            }
            $busy->process->send();
        }
    }
}
