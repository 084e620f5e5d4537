<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\FileType;
use Spindle\Internal\Warnings;

/**
 * Standard output, standard error or a job log, unbuffered: when {@see write()} returns, all bytes are written.
 *
 * A write to a pipe is split into pieces. Before each piece, the fiber waits in the event loop until the stream is
 * writable, so that signals and timers are handled while the reader is slow. The stream stays in blocking mode:
 * O_NONBLOCK would affect all processes that share the open file, and would stay set if this process was killed. A
 * terminal is opened a second time, in non-blocking mode, because a write of any size to a terminal can block.
 */
final class OutputStream
{
    /** Bytes that a writable pipe accepts without blocking: PIPE_BUF on Linux; see pipe(7). */
    private const PIPE_BUF_BYTES = 4096;

    /** @var resource */
    public readonly mixed $stream;
    private readonly bool $isFile;

    private readonly Condition $writable;
    public bool $isWriting = false;
    private bool $abandoned = false;

    /** Fibers that wait in {@see write()} until the write of another fiber has finished. */
    private readonly FiberQueue $writers;

    /** @param resource $stream */
    public function __construct(mixed $stream, private readonly string $name)
    {
        $this->stream = self::openTerminal($stream) ?? $stream;
        $this->isFile = FileType::isRegular($stream);
        stream_set_write_buffer($this->stream, 0);
        $this->writable = new Condition();
        $this->writers = new FiberQueue();
    }

    public static function standardOutput(): self
    {
        return new self(self::openStandard(\STDOUT, 1), 'standard output');
    }

    public static function standardError(): self
    {
        return new self(self::openStandard(\STDERR, 2), 'standard error');
    }

    public function isTerminal(): bool
    {
        return stream_isatty($this->stream);
    }

    public function isSameTerminal(self $other): bool
    {
        return $this->isTerminal() && $other->isTerminal() && $this->device() === $other->device();
    }

    /**
     * Writes all bytes. Suspends while the reader is slow, and while another fiber writes.
     *
     * @param (\Closure(): string)|null $prefix called when the stream is writable; returns bytes to write before $bytes
     *
     * @throws OutputClosedException when the reader has closed the stream; after {@see abandon()}, also when the write
     *                               would have to wait for the reader
     * @throws OutputFailedException when writing fails for another reason, such as a full disk
     */
    public function write(string $bytes, ?\Closure $prefix = null): void
    {
        while ($this->isWriting) {
            $this->writers->wait(null, $this->writers->wakeFirst(...));
        }
        $this->isWriting = true;
        try {
            if ($prefix !== null) {
                $this->waitUntilWritable();
                $bytes = $prefix() . $bytes;
            }
            $this->writeAll($bytes);
        } finally {
            $this->isWriting = false;
            $this->writers->wakeFirst();
        }
    }

    /** Makes the pending write and all later writes throw {@see OutputClosedException} instead of waiting. */
    public function abandon(): void
    {
        $this->abandoned = true;
        $this->writable->notify();
    }

    public function isAbandoned(): bool
    {
        return $this->abandoned;
    }

    /**
     * Returns $stream; or a read-only /dev/null if opcache's lock file has $descriptor, because $stream was closed.
     *
     * @param resource $stream
     *
     * @return resource
     */
    private static function openStandard(mixed $stream, int $descriptor): mixed
    {
        $closed = FileType::isOpcacheLock($descriptor)
            ? Warnings::suppressed(static fn(): mixed => fopen('/dev/null', 'r'))
            : false;

        return $closed === false ? $stream : $closed;
    }

    /**
     * @param resource $stream
     *
     * @return resource|null the terminal, non-blocking; null if $stream is no terminal, or opening the terminal fails
     */
    private static function openTerminal(mixed $stream): mixed
    {
        $name = stream_isatty($stream) && \function_exists('posix_ttyname') ? posix_ttyname($stream) : false;
        $open = static fn(string $path): mixed => Warnings::suppressed(static fn(): mixed => fopen($path, 'r+ne'));
        // /dev/tty opens only if this process has a controlling terminal. Otherwise, fopen($name) could make $name the
        // controlling terminal, so $name is not opened.
        $terminal = $name !== false && $open('/dev/tty') !== false ? $open($name) : false;

        return \is_resource($terminal) ? $terminal : null;
    }

    /** Returns the stream's device number; for /dev/tty, the number of the terminal that /dev/tty stands for. */
    private function device(): ?int
    {
        $device = fstat($this->stream)['rdev'] ?? null;
        if ($device !== Warnings::suppressed(static fn(): mixed => stat('/dev/tty')['rdev'] ?? null)) {
            return $device;
        }
        $stat = (string) Warnings::suppressed(static fn(): mixed => file_get_contents('/proc/self/stat'));
        $fields = explode(' ', substr($stat, (int) strrpos($stat, ')') + 2));

        return (int) ($fields[4] ?? $device); // tty_nr; see proc_pid_stat(5)
    }

    private function writeAll(string $bytes): void
    {
        for ($at = 0, $length = \strlen($bytes); $at < $length; $at += $written) {
            $this->waitUntilWritable();
            error_clear_last();
            $piece = $this->isFile ? $length : self::PIPE_BUF_BYTES;
            $written = @fwrite($this->stream, $at === 0 && $length <= $piece ? $bytes : substr($bytes, $at, $piece));
            if ($written === false) {
                $written = 0;
                $this->throwUnlessInterrupted();
            }
        }
    }

    private function throwUnlessInterrupted(): void
    {
        $message = error_get_last()['message'] ?? null;
        if ($message === null) {
            return; // A signal interrupted the call (EINTR). writeAll() tries again.
        }

        throw str_contains($message, 'errno=32 ')
            ? new OutputClosedException("{$this->name} is closed")
            : OutputFailedException::lastError($this->name);
    }

    private function waitUntilWritable(): void
    {
        while (!$this->isFile && !$this->isWritable()) {
            if ($this->abandoned) {
                throw new OutputClosedException("{$this->name} was abandoned");
            }
            $watcher = EventLoop::onWritable($this->stream, $this->writable->notify(...));
            try {
                $this->writable->wait();
            } finally {
                EventLoop::cancel($watcher);
            }
        }
    }

    private function isWritable(): bool
    {
        $none = [];
        $streams = [$this->stream];

        return @stream_select($none, $streams, $none, 0) === 1;
    }
}
