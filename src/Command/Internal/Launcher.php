<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Launcher\LauncherProcess;
use Spindle\Internal\Launcher\Protocol;
use Spindle\LauncherException;

/** A launcher and the commands that it has. */
final class Launcher
{
    /** How many of the pool's commands may run here at once. */
    public int $share = 0;

    /** Whether the launcher has reported that it is ready. Before, it has started nothing. */
    public bool $isReady = false;

    /** It could start nothing the last time that it was given a command. */
    public bool $exhausted = false;

    /** @var array<int, Ticket> that it has and that have no outcome, by id */
    public array $tickets = [];

    private readonly LauncherProcess $process;

    /** Of the tickets, those that were asked back and have not come yet. */
    private int $moving = 0;

    /**
     * @param string                                           $files what the paths of the pool's temporary files begin with
     * @param \Closure(self, int, int, string, int, int): void $frame type, job, and where its payload lies: bytes, offset,
     *                                                               length
     * @param \Closure(self, string): void                     $died  how it died
     * @param \Closure(self): void                             $left  called in a fork of this process, which hears no more
     *
     * @throws LauncherException when the process can't be started
     */
    public function __construct(
        CommandPoolOptions $options,
        string $files,
        \Closure $frame,
        \Closure $died,
        \Closure $left,
    ) {
        // The callbacks hold no strong reference: a pool that nobody holds is to end.
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
            static function () use ($weak, $left): void {
                $launcher = $weak->get();
                if ($launcher !== null) {
                    $left($launcher);
                }
            },
        );
    }

    /** False in a fork of the process that started it. */
    public function isOurs(): bool
    {
        return $this->process->isOurs();
    }

    /** The event loop goes on although it has no ticket, for somebody waits to hear from it. */
    public function keepLoop(): void
    {
        $this->process->keepLoop();
    }

    public function releaseLoop(): void
    {
        if ($this->tickets === []) {
            $this->process->releaseLoop();
        }
    }

    /** How many commands it has beyond those that can run; negative when slots are free. */
    public function excess(): int
    {
        return \count($this->tickets) - $this->share;
    }

    /** Takes charge of a ticket; while it has any, the event loop goes on. */
    public function add(Ticket $ticket): void
    {
        if ($this->tickets === []) {
            $this->process->keepLoop();
        }
        $this->exhausted = false;
        $this->tickets[$ticket->id] = $ticket;
        $ticket->launcher = $this;
    }

    /** @param array<array-key, string> $variables that commands start from; sent with the next {@see send()} if it is news */
    public function useEnvironment(array $variables): void
    {
        $this->process->useEnvironment($variables);
    }

    /** Frames for the next {@see send()}. */
    public function gather(string $frames): void
    {
        $this->process->gather($frames);
    }

    /** Sends what was gathered, and this, in order; what the pipe does not take now follows as soon as it does. */
    public function send(string $frames = ''): void
    {
        $this->process->send($frames);
    }

    /** Bytes that are gathered, or sent and not taken yet. */
    public function unsent(): int
    {
        return $this->process->unsent();
    }

    /** Takes the frames that are there, and notices that there will be none. */
    public function read(): void
    {
        $this->process->read();
    }

    public function remove(Ticket $ticket): void
    {
        unset($this->tickets[$ticket->id]);
        $ticket->launcher = null;
        $this->stays($ticket);
        $ticket->started = false;
        $this->releaseLoop();
    }

    /** One that was asked back has started already. */
    public function started(Ticket $ticket): void
    {
        $ticket->started = true;
        $this->stays($ticket);
    }

    /** How many of its commands wait for a slot and are not asked back already. */
    public function waiting(): int
    {
        return $this->excess() - $this->moving;
    }

    /** How many were asked back and have not come yet. */
    public function moving(): int
    {
        return $this->moving;
    }

    /** Asks for one that waits, to be given to another launcher: the last one, for it would wait longest. */
    public function askBack(): bool
    {
        for ($ticket = end($this->tickets); $ticket !== false; $ticket = prev($this->tickets)) {
            if (!$ticket->moving && !$ticket->started) {
                $ticket->moving = true;
                ++$this->moving;
                $this->gather(Protocol::frame(Protocol::WITHDRAW, $ticket->id));

                return true;
            }
        }

        return false;
    }

    /** Tells it to end, without waiting for that. */
    public function hangUp(): void
    {
        $this->process->hangUp();
    }

    /** Hangs up and returns when it has ended; in a fork of the process that started it, at once. */
    public function close(): void
    {
        $this->process->close();
    }

    private function stays(Ticket $ticket): void
    {
        if ($ticket->moving) {
            $ticket->moving = false;
            --$this->moving;
        }
    }
}
