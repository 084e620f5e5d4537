<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Http\HttpServerStatistics;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\LoadedFiles;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\Preload;
use Spindle\Internal\Warnings;

/**
 * The running processes that the supervisor has forked. Each has a channel to the supervisor.
 *
 * @implements \IteratorAggregate<int, Child>
 */
final class Children implements \IteratorAggregate
{
    /**
     * Maximum nanoseconds of one wait, so that signals are handled in time. A signal that arrives right before a wait
     * does not end the wait. With ext-uv or ext-event, no signal ends a wait.
     */
    private const MAX_WAIT_NANOSECONDS = 1_000_000_000;

    /** @var array<int, Child> by pid */
    private array $children = [];

    /** @param array<string, resource> $sockets listening sockets of all roles, by address */
    public function __construct(
        private readonly LoggerInterface $logger,
        private readonly ChildMessages $receiver,
        private readonly array $sockets,
    ) {
        Preload::load( // loading a class needs a file descriptor, and perhaps none is free later
            ForkException::class,
            HttpServerStatistics::class,
            LoopLimit::class,
            MalformedFrameException::class,
            Signals::class,
        );
    }

    /** @return \ArrayIterator<int, Child> */
    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->children);
    }

    /** @return array<int, Child> */
    public function runningApplication(): array
    {
        return array_filter($this->children, static fn(Child $child): bool => $child->slot->role->runsApplication);
    }

    /** @return list<Child> the slot's current process, its successor, and earlier processes that are still ending */
    public function ofSlot(Slot $slot): array
    {
        return array_values(array_filter($this->children, static fn(Child $child): bool => $child->slot === $slot));
    }

    public function isEmpty(): bool
    {
        return $this->children === [];
    }

    /** @throws ForkException in the supervisor. In the forked process, this method serves HTTP and never returns */
    public function fork(Slot $slot): Child
    {
        self::endLoopFiber();
        [$supervisorEnd, $workerEnd] = Channel::pair();
        $pid = Warnings::suppressed(pcntl_fork(...));
        if ($pid === 0) {
            // Records that PHP has loaded no file of the application before this time. Otherwise, a file that has
            // changed since the supervisor's start would count as changed after PHP loaded it.
            LoadedFiles::record();
            $this->disconnect($slot->role);
            $supervisorEnd->close();
            (new ServingProcess($slot->role, $workerEnd, $this->logger, EventLoop::getDriver()))->run();
        }
        $workerEnd->close();

        return $pid > 0
            ? $this->children[$pid] = new Child($slot, $pid, $supervisorEnd)
            : throw ForkException::because(pcntl_strerror(pcntl_get_last_error()));
    }

    /**
     * Runs the event loop until it is stopped, a channel can be read or flushed, or $deadline by hrtime() has passed,
     * but at most for one second. Then handles the messages. Leaves no callbacks, because a fork would inherit them.
     */
    public function wait(int $deadline): void
    {
        $stop = EventLoop::getDriver()->stop(...);
        $nanoseconds = max(0, min($deadline - (int) hrtime(true), self::MAX_WAIT_NANOSECONDS));
        $watchers = [EventLoop::delay($nanoseconds / 1e9, $stop)];
        $readable = [];
        foreach ($this->children as $pid => $child) {
            if (!$child->connected) {
                continue;
            }
            $watchers[] = EventLoop::onReadable(
                $child->channel->stream(),
                static function () use ($stop, $pid, &$readable): void {
                    $readable[] = $pid;
                    $stop();
                },
            );
            if (!$child->channel->isSent()) {
                $watchers[] = EventLoop::onWritable($child->channel->stream(), $stop);
            }
        }
        try {
            EventLoop::run();
        } finally {
            array_map(EventLoop::cancel(...), $watchers);
        }
        foreach ($this->children as $child) {
            $child->channel->flush();
        }
        foreach ($readable as $pid) {
            $this->receive($this->children[$pid]);
        }
    }

    /** @return list<Child> processes that have ended since the last call */
    public function reap(): array
    {
        $ended = [];
        foreach ($this->statuses() as $pid => $status) {
            $child = $this->children[$pid] ?? null;
            if ($child === null) {
                continue;
            }
            if ($child->connected) {
                $this->receive($child); // messages that the process sent before its end
            }
            if ($child->endReason === '' && !($child->stopRequested && $status === 0)) {
                $child->endReason = pcntl_wifsignaled($status)
                    ? 'was killed by signal ' . pcntl_wtermsig($status)
                    : 'exited with ' . pcntl_wexitstatus($status);
            }
            $child->endReason .= $child->positionClause();
            $child->channel->close();
            unset($this->children[$pid]);
            $ended[] = $child;
        }

        return $ended;
    }

    public function killAll(): void
    {
        foreach ($this->children as $child) {
            $child->kill();
        }
        foreach ($this->children as $pid => $child) {
            while (pcntl_waitpid($pid, $status) === -1 && pcntl_get_last_error() === \PCNTL_EINTR);
            $child->channel->close();
        }
        $this->children = [];
    }

    /** @return iterable<int, int> exit statuses by pid; if the supervisor has pid 1 (container), also of orphans */
    private function statuses(): iterable
    {
        foreach (getmypid() === 1 ? [-1] : array_keys($this->children) as $awaited) {
            while (($pid = pcntl_waitpid($awaited, $status, \WNOHANG)) > 0) {
                /** @var int $status */
                yield $pid => $status;
            }
        }
    }

    private function receive(Child $child): void
    {
        try {
            $messages = $child->channel->receive();
        } catch (MalformedFrameException|\ValueError) {
            $child->kill('was killed, because it sent the supervisor an invalid message');
            $messages = null;
        }
        if ($messages === null) {
            $child->connected = false;
        }
        foreach ($messages ?? [] as $message) {
            $this->receiver->handleMessage($child, ...$message);
        }
    }

    /** Ends the event loop's fiber if it is suspended. Otherwise, the forked process could not replace the loop. */
    private static function endLoopFiber(): void
    {
        // Revolt counts a loop with a suspended fiber as running, and refuses to replace a running loop.
        if (EventLoop::getDriver()->isRunning()) {
            EventLoop::queue(EventLoop::getDriver()->stop(...));
            EventLoop::run();
        }
    }

    /** Closes the copies that this process has of other processes' sockets and channels. */
    private function disconnect(ProcessRole $role): void
    {
        array_map(fclose(...), array_diff_key($this->sockets, $role->sockets));
        foreach ($this->children as $child) {
            $child->channel->close(); // while a copy is open, $child would not notice that the supervisor has ended
        }
        $this->children = [];
    }
}
