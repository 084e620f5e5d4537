<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;

/**
 * Standard output or standard error. Unbuffered: what {@see write()} has taken is written when it returns.
 *
 * A pipe or a terminal is opened anew, so that it can be non-blocking for this process alone: O_NONBLOCK belongs to the
 * open file, which other processes share. Signals and timers are then heard while a reader is slow.
 */
final class OutputStream
{
    private const TYPE = 0o170000;
    private const PIPE = 0o010000;
    private const DEVICE = 0o020000;

    /** @var resource */
    private readonly mixed $stream;

    /** @var Suspension<mixed>|null */
    private ?Suspension $waiting = null;
    private bool $writing = false;
    private bool $abandoned = false;

    /** @var \SplQueue<Suspension<mixed>> fibers whose turn to write has not come */
    private readonly \SplQueue $turns;

    /**
     * @param resource $stream
     * @param int      $descriptor its number, for a standard stream; -1 for another
     */
    public function __construct(mixed $stream, private readonly string $name, int $descriptor = -1)
    {
        $this->stream = self::ownCopy($stream, $descriptor) ?? $stream;
        stream_set_write_buffer($this->stream, 0);
        $this->turns = new \SplQueue();
    }

    public static function standardOutput(): self
    {
        return new self(\STDOUT, 'standard output', 1);
    }

    public static function standardError(): self
    {
        return new self(\STDERR, 'standard error', 2);
    }

    public function isTerminal(): bool
    {
        return stream_isatty($this->stream);
    }

    /**
     * Suspends while the reader is slow, and while another fiber writes.
     *
     * @throws OutputClosedException when nobody reads any more, or after {@see abandon()}
     * @throws OutputFailedException when it can't be written for another reason, such as a full disk
     */
    public function write(string $bytes): void
    {
        while ($this->writing) {
            $turn = EventLoop::getSuspension();
            $this->turns->enqueue($turn);
            $turn->suspend();
        }
        $this->writing = true;
        try {
            $this->writeAll($bytes);
        } finally {
            $this->writing = false;
            if (!$this->turns->isEmpty()) {
                $this->turns->dequeue()->resume();
            }
        }
    }

    /** A write that waits for its reader, and every later one, throws. */
    public function abandon(): void
    {
        $this->abandoned = true;
        $this->wake();
    }

    private function writeAll(string $bytes): void
    {
        for ($at = 0, $length = \strlen($bytes); $at < $length; $at += $written) {
            if ($this->abandoned) {
                throw new OutputClosedException("{$this->name} is given up");
            }
            error_clear_last();
            $written = @fwrite($this->stream, $at === 0 ? $bytes : substr($bytes, $at));
            if ($written === false) {
                $written = 0;
                $this->considerError();
            } elseif ($written === 0) {
                $this->wait();
            }
        }
    }

    private function considerError(): void
    {
        $message = error_get_last()['message'] ?? null;
        if ($message === null) {
            return; // A signal came in between (EINTR): try again.
        }

        throw str_contains($message, 'errno=32 ')
            ? new OutputClosedException("{$this->name} is closed")
            : OutputFailedException::lastError($this->name);
    }

    private function wait(): void
    {
        $watcher = EventLoop::onWritable($this->stream, $this->wake(...));
        try {
            $this->waiting = EventLoop::getSuspension();
            $this->waiting->suspend();
        } finally {
            EventLoop::cancel($watcher);
        }
    }

    private function wake(): void
    {
        $waiting = $this->waiting;
        $this->waiting = null;
        $waiting?->resume();
    }

    /**
     * @param resource $stream
     *
     * @return resource|null null for what can't be opened anew, or is better not: a file has a position that is shared
     */
    private static function ownCopy(mixed $stream, int $descriptor): mixed
    {
        $type = (fstat($stream)['mode'] ?? 0) & self::TYPE;
        if ($descriptor < 0 || ($type !== self::PIPE && $type !== self::DEVICE)) {
            return null;
        }
        $copy = @fopen("/proc/self/fd/{$descriptor}", 'wn'); // n: without waiting for a FIFO's reader
        if ($copy === false) {
            return null;
        }
        stream_set_blocking($copy, false);

        return $copy;
    }
}
