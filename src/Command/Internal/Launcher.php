<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\FreeMemory;
use Spindle\Internal\Launcher\LauncherEvents;
use Spindle\Internal\Launcher\LauncherProcess;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\LauncherException;

/** Represents a launcher (a helper process that starts commands) with its pending commands. */
final class Launcher implements LauncherEvents
{
    /** Maximum bytes of the running commands' streamed output or input in memory of this process; {@see window()}. */
    private const MAX_STREAMED_BYTES = 64 << 20;
    private const MIN_WINDOW = 1 << 14;

    /** Number of copies of unsent bytes that {@see LauncherProcess} can have. */
    private const UNSENT_COPIES = 3;

    public int $share = 0;

    /**
     * Largest share of any launcher of the pool, as sent in the last CONFIGURE frame. The launcher refuses the frame if
     * this share needs too many descriptors.
     */
    public int $largestShare = 0;

    /** While a command has this number of unacknowledged input bytes, this process sends no further input to it. */
    public int $inputWindow = LauncherProtocol::INPUT_WINDOW;

    public bool $isReady = false;

    /** Whether the launcher lacked a descriptor or process for a command, and has got no new command since then. */
    public bool $exhausted = false;

    /** @var array<int, PendingCommand> pending commands of this launcher, by id, in the order of assignment */
    public array $commands = [];

    /** The share, or 0 while the pool is paused. */
    private int $usableShare = 0;

    /** @var array<int, PendingCommand> commands that ran when CONFIGURE was sent, until the launcher answers; by id */
    private array $runningAtConfigure = [];

    public readonly LauncherProcess $process;

    /** Number of commands of this launcher that are moving to another one ({@see PendingCommand::$isMoving}). */
    public int $movingCount = 0;

    /**
     * @param string $temporaryFilePrefix beginning of the paths of all temporary files of this process
     * @param \WeakReference<LauncherBackend> $backend weak, because a strong reference would keep an unused pool alive
     *
     * @throws LauncherException when the process can't be started
     */
    public function __construct(
        private readonly CommandPoolOptions $options,
        string $temporaryFilePrefix,
        private readonly \WeakReference $backend,
    ) {
        $this->process = new LauncherProcess($options->php, $options->startMethod->value, $temporaryFilePrefix, $this);
    }

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        $this->backend->get()?->onFrame($this, $type, $id, $bytes, $at, $length);
    }

    public function onDeath(string $how): void
    {
        $this->backend->get()?->onDeath($this, $how);
    }

    public function onDestroyed(): void
    {
        $this->backend->get()?->onDestroyed();
    }

    public function onFork(): void
    {
        $this->backend->get()?->onFork($this);
    }

    public function releaseLoop(): void
    {
        if ($this->commands === []) {
            $this->process->releaseLoop();
        }
    }

    /**
     * Returns the commands that probably run. A launcher takes waiting commands from the runs in rotation, and reports
     * a start if an older command still waits. So the running commands whose start was not reported are the oldest.
     *
     * @return array<int, PendingCommand> by id
     */
    public function running(): array
    {
        $running = array_filter(
            $this->commands,
            fn(PendingCommand $pending): bool => $pending->started || isset($this->runningAtConfigure[$pending->id]),
        );
        $others = array_diff_key($this->commands, $running);

        return $running + \array_slice($others, 0, max(0, $this->usableShare - \count($running)), true);
    }

    /**
     * Sends a CONFIGURE frame. Each launcher checks whether it can run the largest share. So all launchers accept their
     * frames, or none.
     *
     * @param bool $isPaused whether the launcher starts no commands; running commands continue in any case
     */
    public function configure(int $share, int $largestShare, bool $isPaused): void
    {
        $this->runningAtConfigure = $this->isReady ? $this->running() : [];
        $this->share = $share;
        $this->usableShare = $isPaused ? 0 : $share;
        $this->largestShare = $largestShare;
        $this->inputWindow = self::window($largestShare, self::UNSENT_COPIES, LauncherProtocol::INPUT_WINDOW);
        $announcedStarts = ($this->options->rerunAfterCrash ? LauncherProtocol::BEFORE_START : 0)
            | ($this->options->delay > 0.0 ? LauncherProtocol::AFTER_START : 0);
        $this->process->send(LauncherProtocol::frame(
            LauncherProtocol::CONFIGURE,
            0,
            pack(
                'VVeCV',
                $this->usableShare,
                $largestShare,
                $this->options->gracePeriod,
                $announcedStarts,
                self::window($largestShare, 1, LauncherProtocol::OUTPUT_WINDOW),
            ),
        ));
    }

    /**
     * Returns the maximum bytes that this process keeps for each running command, so that all commands fit in memory.
     *
     * @param int $copies number of times that a byte can be in memory
     */
    private static function window(int $largestShare, int $copies, int $max): int
    {
        $total = FreeMemory::quarterOfLimit(self::MAX_STREAMED_BYTES);
        $parts = $copies * Launchers::MAX_LAUNCHERS * max(1, $largestShare);

        return max(self::MIN_WINDOW, min($max, intdiv($total, $parts)));
    }

    /** Handles the end of the answer to a CONFIGURE frame. The answer has reported each running command's start. */
    public function onConfigured(): void
    {
        $this->runningAtConfigure = [];
    }

    /** Returns the number of commands beyond the share. The result is negative when slots are free. */
    public function excess(): int
    {
        return \count($this->commands) - $this->share;
    }

    /**
     * Adds a command. The event loop keeps running while the launcher has commands.
     *
     * @throws LauncherException when PHP has already called the destructor of `$process`, at the end of the script
     */
    public function add(PendingCommand $pending): void
    {
        if ($this->commands === [] || $this->process->isClosed) {
            $this->process->keepLoop();
        }
        $this->exhausted = false;
        $this->commands[$pending->id] = $pending;
        $pending->launcher = $this;
    }

    public function remove(PendingCommand $pending): void
    {
        unset($this->commands[$pending->id], $this->runningAtConfigure[$pending->id]);
        $pending->launcher = null;
        $this->endMove($pending);
        $pending->started = false;
        $this->releaseLoop();
    }

    /** Records that a command has started. The launcher keeps the command, even if a WITHDRAW frame was sent. */
    public function started(PendingCommand $pending): void
    {
        $pending->started = $pending->mayHaveStarted = true;
        $this->endMove($pending);
    }

    /** Returns the number of commands that wait for a slot and were not withdrawn; 0 or less if no command waits. */
    public function waitingCount(): int
    {
        return $this->excess() - $this->movingCount;
    }

    /** Queues a WITHDRAW frame for the newest command that may be waiting. Returns false if no command may wait. */
    public function withdrawLast(): bool
    {
        for ($pending = end($this->commands); $pending !== false; $pending = prev($this->commands)) {
            if (!$pending->isMoving && !$pending->started) {
                $pending->isMoving = true;
                ++$this->movingCount;
                $this->process->queue(LauncherProtocol::frame(LauncherProtocol::WITHDRAW, $pending->id));

                return true;
            }
        }

        return false;
    }

    private function endMove(PendingCommand $pending): void
    {
        if ($pending->isMoving) {
            $pending->isMoving = false;
            --$this->movingCount;
        }
    }
}
