<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Launcher\LauncherEvents;
use Spindle\Internal\Launcher\LauncherProcess;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\LauncherException;

/** A launcher and its pending commands. {@see LauncherProcess} documents the methods that both classes have. */
final class Launcher implements LauncherEvents
{
    /** Maximum number of commands that this launcher runs at once. */
    public int $share = 0;

    /** Whether the launcher has reported that it is ready. Until then, it starts nothing. */
    public bool $isReady = false;

    /** Whether the launcher lacked descriptors or processes for a command, and has got no other command since then. */
    public bool $exhausted = false;

    /** @var array<int, PendingCommand> pending commands of this launcher, by id, in the order of assignment */
    public array $commands = [];

    private readonly LauncherProcess $process;

    /** Number of commands that this launcher was asked to return and has neither returned nor started. */
    private int $movingCount = 0;

    /**
     * @param string $temporaryFilePrefix beginning of the paths of all temporary files of this process
     * @param \Closure(self, int, int, string, int, int): void $onFrame called for each frame: type, job, and payload as
     *        bytes, offset and length
     * @param \Closure(self, string): void $onDeath called with the cause of the launcher's death
     * @param \Closure(self): void $onFork called once in a fork of this process, in place of the other callbacks
     *
     * @throws LauncherException when the process can't be started
     */
    public function __construct(
        CommandPoolOptions $options,
        string $temporaryFilePrefix,
        private readonly \Closure $onFrame,
        private readonly \Closure $onDeath,
        private readonly \Closure $onFork,
    ) {
        $this->process = new LauncherProcess($options->php, $options->start->value, $temporaryFilePrefix, $this);
    }

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        ($this->onFrame)($this, $type, $id, $bytes, $at, $length);
    }

    public function onDeath(string $how): void
    {
        ($this->onDeath)($this, $how);
    }

    public function onFork(): void
    {
        ($this->onFork)($this);
    }

    public function isOurs(): bool
    {
        return $this->process->isOurs();
    }

    public function keepLoop(): void
    {
        $this->process->keepLoop();
    }

    /** Lets the event loop end, unless this launcher has commands. */
    public function releaseLoop(): void
    {
        if ($this->commands === []) {
            $this->process->releaseLoop();
        }
    }

    /** Returns the number of commands beyond the share. The result is negative when slots are free. */
    public function excess(): int
    {
        return \count($this->commands) - $this->share;
    }

    /** Adds a command. The event loop keeps running as long as the launcher has commands. */
    public function add(PendingCommand $pending): void
    {
        if ($this->commands === []) {
            $this->process->keepLoop();
        }
        $this->exhausted = false;
        $this->commands[$pending->id] = $pending;
        $pending->launcher = $this;
    }

    /** @param array<array-key, string> $variables environment of the commands that are queued from now on */
    public function useEnvironment(array $variables): void
    {
        $this->process->useEnvironment($variables);
    }

    public function queue(string $frames): void
    {
        $this->process->queue($frames);
    }

    public function send(string $frames = ''): void
    {
        $this->process->send($frames);
    }

    public function unsentBytes(): int
    {
        return $this->process->unsentBytes();
    }

    public function read(): void
    {
        $this->process->read();
    }

    public function remove(PendingCommand $pending): void
    {
        unset($this->commands[$pending->id]);
        $pending->launcher = null;
        $this->cancelMove($pending);
        $pending->started = false;
        $this->releaseLoop();
    }

    /** Records that a command has started. A command that was asked back stays here. */
    public function started(PendingCommand $pending): void
    {
        $pending->started = true;
        $this->cancelMove($pending);
    }

    /** Returns the number of commands that wait for a slot and were not asked back; below 1 if there are none. */
    public function waitingCount(): int
    {
        return $this->excess() - $this->movingCount;
    }

    public function movingCount(): int
    {
        return $this->movingCount;
    }

    /** Queues a request to return the last command that may be waiting. Returns false if there is no such command. */
    public function askBack(): bool
    {
        for ($pending = end($this->commands); $pending !== false; $pending = prev($this->commands)) {
            if (!$pending->moving && !$pending->started) {
                $pending->moving = true;
                ++$this->movingCount;
                $this->queue(LauncherProtocol::frame(LauncherProtocol::WITHDRAW, $pending->id));

                return true;
            }
        }

        return false;
    }

    public function requestEnd(): void
    {
        $this->process->requestEnd();
    }

    public function close(): void
    {
        $this->process->close();
    }

    private function cancelMove(PendingCommand $pending): void
    {
        if ($pending->moving) {
            $pending->moving = false;
            --$this->movingCount;
        }
    }
}
