<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Spindle\Command\SpoolException;
use Spindle\Internal\Fibers;
use Spindle\Internal\Warnings;

/**
 * Passes output to a callback or a stream, piece by piece and in order, while other fibers run.
 *
 * The target may suspend. The launcher's window limits undelivered output; each delivered piece reopens it.
 */
final class Sink
{
    /** @var \SplQueue<string> */
    private \SplQueue $pieces;
    private bool $delivering = false;
    private bool $broken = false;

    /** @var (\Closure(): void)|null */
    private ?\Closure $drained = null;

    /**
     * @param \Closure(string): void|resource $target
     * @param \Closure(int): void             $onDelivered  called with the number of bytes delivered
     * @param \Closure(\Throwable): void      $failed called once; nothing more is delivered
     */
    public function __construct(
        private readonly mixed $target,
        private readonly \Closure $onDelivered,
        private readonly \Closure $failed,
    ) {
        $this->pieces = new \SplQueue();
    }

    public function write(string $bytes): void
    {
        if ($this->broken) {
            ($this->onDelivered)(\strlen($bytes));

            return;
        }
        $this->pieces->enqueue($bytes);
        if (!$this->delivering) {
            $this->delivering = true;
            EventLoop::queue($this->deliver(...));
        }
    }

    /** @param \Closure(): void $then called when all written output is delivered, or immediately if it already is */
    public function whenDrained(\Closure $then): void
    {
        if ($this->delivering && !$this->broken) {
            $this->drained = $then;
        } else {
            $then();
        }
    }

    /** Drops undelivered output, and all that follows. A callback that has suspended is not interrupted. */
    public function discard(): void
    {
        $this->broken = true;
        $this->pieces = new \SplQueue();
        $this->notifyDrained();
    }

    private function deliver(): void
    {
        try {
            while (!$this->pieces->isEmpty()) {
                $bytes = $this->pieces->dequeue();
                if (!$this->broken) {
                    if ($this->target instanceof \Closure) {
                        ($this->target)($bytes);
                    } else {
                        $this->copy($bytes);
                    }
                }
                ($this->onDelivered)(\strlen($bytes));
            }
        } catch (\Throwable $thrown) {
            $this->broken = true;
            $this->pieces = new \SplQueue();
            ($this->failed)($thrown);
        } finally {
            $this->delivering = false;
        }
        $this->notifyDrained();
    }

    private function notifyDrained(): void
    {
        $drained = $this->drained;
        $this->drained = null;
        if ($drained !== null) {
            $drained();
        }
    }

    private function copy(string $bytes): void
    {
        $stream = $this->target;
        while ($bytes !== '') {
            if (!\is_resource($stream)) {
                throw SpoolException::closedStream();
            }
            error_clear_last();
            $written = self::writeNow($stream, $bytes);
            if ($written === false || ($written === 0 && error_get_last() !== null)) {
                throw SpoolException::onStream();
            }
            $bytes = substr($bytes, $written);
            if ($bytes !== '') {
                $this->awaitWritable($stream);
            }
        }
    }

    /**
     * Writes without blocking, even to a blocking stream: its reader may be waiting for this process.
     *
     * @param resource $stream
     */
    private static function writeNow(mixed $stream, string $bytes): int|false
    {
        $stat = Warnings::suppressed(static fn(): array|false => @fstat($stream));
        $isFile = $stat === false || ($stat['mode'] & 0o170000) === 0o100000;
        $blocks = !$isFile && stream_get_meta_data($stream)['blocked'] && stream_set_blocking($stream, false);
        $written = Warnings::write($stream, $bytes);
        if ($blocks) {
            stream_set_blocking($stream, true);
        }

        return $written;
    }

    /** @param resource $stream */
    private function awaitWritable(mixed $stream): void
    {
        $suspension = EventLoop::getSuspension();
        $watcher = EventLoop::onWritable($stream, static function (string $watcher) use ($suspension): void {
            EventLoop::cancel($watcher);
            $suspension->resume();
        });
        try {
            Fibers::suspend($suspension);
        } finally {
            EventLoop::cancel($watcher);
        }
    }
}
