<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Launcher\LauncherProcess;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\LauncherException;

/** A launcher and its pending commands. */
final class Launcher
{
    /** Maximum number of commands that may run here at once. */
    public int $share = 0;

    /** Whether the launcher has reported that it is ready. Until then, it starts nothing. */
    public bool $isReady = false;

    /** Whether the launcher could not start the last command, for lack of descriptors or processes. */
    public bool $exhausted = false;

    /** @var array<int, PendingCommand> pending commands of this launcher, by id */
    public array $commands = [];

    private readonly LauncherProcess $process;

    /** Number of commands that were asked back and have not been returned yet. */
    private int $moving = 0;

    /**
     * @param string                                           $files prefix of the paths of the pool's temporary files
     * @param \Closure(self, int, int, string, int, int): void $frame type, job, and payload: bytes, offset, length
     * @param \Closure(self, string): void                     $died  called with the reason of the launcher's death
     * @param \Closure(self): void                             $onFork  called in a fork of this process, without frames
     *
     * @throws LauncherException when the process can't be started
     */
    public function __construct(
        CommandPoolOptions $options,
        string $files,
        \Closure $frame,
        \Closure $died,
        \Closure $onFork,
    ) {
        // The callbacks hold only weak references, so that a pool without any other reference is destroyed.
        $weak = \WeakReference::create($this);
        $this->process = new LauncherProcess(
            $options->php,
            $options->start->value,
            $files,
            static function (int $type, int $job, string $bytes, int $at, int $length) use ($weak, $frame): void {
                $launcher = $weak->get();
                if ($launcher !== null) {
                    $frame($launcher, $type, $job, $bytes, $at, $length);
                }
            },
            static function (string $how) use ($weak, $died): void {
                $launcher = $weak->get();
                if ($launcher !== null) {
                    $died($launcher, $how);
                }
            },
            static function () use ($weak, $onFork): void {
                $launcher = $weak->get();
                if ($launcher !== null) {
                    $onFork($launcher);
                }
            },
        );
    }

    /** Returns whether this process started the launcher. In a fork of that process, the result is false. */
    public function isOurs(): bool
    {
        return $this->process->isOurs();
    }

    /** Keeps the event loop running without pending commands, because a fiber waits for a frame of this launcher. */
    public function keepLoop(): void
    {
        $this->process->keepLoop();
    }

    public function releaseLoop(): void
    {
        if ($this->commands === []) {
            $this->process->releaseLoop();
        }
    }

    /** Returns the number of commands beyond the share; negative when slots are free. */
    public function excess(): int
    {
        return \count($this->commands) - $this->share;
    }

    /** Takes a command. The event loop runs as long as the launcher has one. */
    public function add(PendingCommand $pending): void
    {
        if ($this->commands === []) {
            $this->process->keepLoop();
        }
        $this->exhausted = false;
        $this->commands[$pending->id] = $pending;
        $pending->launcher = $this;
    }

    /** @param array<array-key, string> $variables for the commands that follow; sent with them if changed */
    public function useEnvironment(array $variables): void
    {
        $this->process->useEnvironment($variables);
    }

    /** Collects frames for the next {@see send()}. */
    public function queue(string $frames): void
    {
        $this->process->queue($frames);
    }

    /** Sends the collected frames, then these. Bytes that the pipe can't hold now follow as soon as it can. */
    public function send(string $frames = ''): void
    {
        $this->process->send($frames);
    }

    /** Bytes that were collected but not sent, or that the launcher has not received. */
    public function unsent(): int
    {
        return $this->process->unsent();
    }

    /** Processes the frames that have arrived, and notices when the launcher has died. */
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

    /** Notes that a command has started; if it was asked back, it stays. */
    public function started(PendingCommand $pending): void
    {
        $pending->started = true;
        $this->cancelMove($pending);
    }

    /** Number of commands that wait for a slot and were not asked back. */
    public function waiting(): int
    {
        return $this->excess() - $this->moving;
    }

    /** Number of commands that were asked back and have not been returned yet. */
    public function moving(): int
    {
        return $this->moving;
    }

    /** Asks a waiting command back, for another launcher: the last one, because it would wait longest. */
    public function askBack(): bool
    {
        for ($pending = end($this->commands); $pending !== false; $pending = prev($this->commands)) {
            if (!$pending->moving && !$pending->started) {
                $pending->moving = true;
                ++$this->moving;
                $this->queue(LauncherProtocol::frame(LauncherProtocol::WITHDRAW, $pending->id));

                return true;
            }
        }

        return false;
    }

    /** Asks the launcher to end, without waiting for that. */
    public function requestEnd(): void
    {
        $this->process->requestEnd();
    }

    /** Asks the launcher to end and waits for that; returns immediately in a fork of the process that started it. */
    public function close(): void
    {
        $this->process->close();
    }

    private function cancelMove(PendingCommand $pending): void
    {
        if ($pending->moving) {
            $pending->moving = false;
            --$this->moving;
        }
    }
}
