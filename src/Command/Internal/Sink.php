<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Spindle\Command\StreamException;
use Spindle\Internal\Async\CallbackFiber;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\FileType;
use Spindle\Internal\Warnings;

/**
 * Passes a command's output to the caller's function or stream, piece by piece and in order. The event loop delivers
 * the pieces after write() has returned, so the function may suspend. While more bytes than the output window (at most
 * LauncherProtocol::OUTPUT_WINDOW) are not yet delivered or dropped, the launcher reads no more of the output.
 */
final class Sink
{
    /** @var \SplQueue<string> pieces to deliver */
    private \SplQueue $pieces;

    private bool $delivering = false;

    public readonly CallbackFiber $fiber;

    /** Whether all further output is dropped: after a failure of the target, and after {@see discard()}. */
    private bool $dropsOutput = false;

    /** @var (\Closure(): void)|null called when no output is left to deliver */
    private ?\Closure $onEmpty = null;

    /** Whether the event loop can watch the target; null before the first write to a stream. */
    private ?bool $isWatched = null;

    private readonly Condition $writable;
    private string $writeWatcher = '';

    /**
     * @param \Closure(string): mixed|resource $target
     * @param PendingCommand|null $command set to null by {@see release()}
     */
    public function __construct(private readonly mixed $target, private ?PendingCommand $command)
    {
        $this->pieces = new \SplQueue();
        $this->fiber = new CallbackFiber();
        $this->writable = new Condition();
    }

    public function write(string $bytes): void
    {
        if ($this->dropsOutput) {
            $this->command?->acknowledgeOutput(\strlen($bytes));

            return;
        }
        $this->pieces->enqueue($bytes);
        if (!$this->delivering) {
            $this->delivering = true;
            EventLoop::queue($this->fiber->run(...), $this->deliver(...));
        }
    }

    /** @param \Closure(): void $then called when no output is left to deliver: immediately if none is left now */
    public function whenEmpty(\Closure $then): void
    {
        $this->delivering && !$this->dropsOutput ? $this->onEmpty = $then : $then();
    }

    /** Drops output that is not delivered, and all later output. A suspended callback is not interrupted. */
    public function discard(): void
    {
        $this->dropsOutput = true;
        $this->pieces = new \SplQueue();
        EventLoop::cancel($this->writeWatcher); // the caller may close the stream now
        $this->writable->notify();
        $this->notifyEmpty();
    }

    /**
     * Drops the reference to the command, whose outcome is known. If the pool was killed or the launcher died, output
     * may be undelivered. A function still receives this output. A stream does not: the caller may close it now.
     */
    public function release(): void
    {
        $this->command = $this->onEmpty = null;
        $this->target instanceof \Closure ? null : $this->discard();
    }

    private function deliver(): void
    {
        try {
            while (!$this->pieces->isEmpty()) {
                $bytes = $this->pieces->dequeue();
                if (!$this->dropsOutput) {
                    $this->target instanceof \Closure ? ($this->target)($bytes) : $this->writeToStream($bytes);
                }
                $this->command?->acknowledgeOutput(\strlen($bytes));
            }
        } catch (\Throwable $thrown) {
            $this->dropsOutput = true;
            $this->pieces = new \SplQueue();
            $this->command?->fail($thrown, $this->target instanceof \Closure);
        } finally {
            $this->delivering = false;
        }
        $this->notifyEmpty();
    }

    private function notifyEmpty(): void
    {
        $onEmpty = $this->onEmpty;
        $this->onEmpty = null;
        if ($onEmpty !== null) {
            $onEmpty();
        }
    }

    private function writeToStream(string $bytes): void
    {
        $stream = $this->target;
        while ($bytes !== '') {
            if (!\is_resource($stream)) {
                throw StreamException::closedStream();
            }
            $isWatched = $this->isWatched ??= FileType::canBeWatched($stream);
            error_clear_last();
            $written = self::writeNow($stream, $bytes, $isWatched);
            if ($written === false || ($written === 0 && (!$isWatched || error_get_last() !== null))) {
                throw StreamException::onStream();
            }
            $bytes = substr($bytes, $written);
            if ($bytes !== '' && $isWatched) {
                $this->awaitWritable($stream);
            }
            if ($this->dropsOutput) {
                return;
            }
        }
    }

    /**
     * Writes without blocking, even to a blocking stream, because the stream's reader may be waiting for this process.
     * If the stream can't be watched, keeps the mode and may block: a filter in non-blocking mode would lose bytes.
     *
     * @param resource $stream
     */
    private static function writeNow(mixed $stream, string $bytes, bool $isWatched): int|false
    {
        $blocks = $isWatched && stream_get_meta_data($stream)['blocked'] && stream_set_blocking($stream, false);
        $written = Warnings::writeApplicationStream($stream, $bytes);
        if ($blocks) {
            stream_set_blocking($stream, true);
        }

        return $written;
    }

    /** @param resource $stream */
    private function awaitWritable(mixed $stream): void
    {
        $this->writeWatcher = EventLoop::onWritable($stream, $this->writable->notify(...));
        try {
            $this->writable->wait();
        } finally {
            EventLoop::cancel($this->writeWatcher);
        }
    }
}
