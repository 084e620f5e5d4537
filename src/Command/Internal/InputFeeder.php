<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Revolt\EventLoop;
use Spindle\Command\StreamException;
use Spindle\Internal\Async\CallbackFiber;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\FileType;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Warnings;

/** Sends a command's input in pieces. Waits while {@see window()} or more bytes are unacknowledged. */
final class InputFeeder
{
    private const MAX_PIECE_BYTES = 1 << 16;

    /** Pause after a read without bytes, if the stream has not ended and the event loop can't watch the stream. */
    private const EMPTY_READ_PAUSE_SECONDS = 0.01;

    private int $unacknowledged = 0;

    /** Whether bytes of the source may have been read. */
    public bool $isStarted = false;

    /** Whether {@see feed()} waits because too many bytes are unacknowledged. */
    private bool $isWaitingForWindow = false;

    private readonly Condition $changed;
    private string $readWatcher = '';

    /** @var resource|null the source, if this object has switched the source to non-blocking mode */
    private mixed $madeNonBlocking = null;

    /** Fiber that reads the source. The pool's close() throws in this fiber. Otherwise, close() would wait forever. */
    public readonly CallbackFiber $fiber;

    /**
     * @param string|resource|iterable<mixed, string> $source
     * @param PendingCommand|null $command set to null by {@see stop()}. Otherwise, the command and this object would
     *     refer to each other, and PHP would keep the command's input and output until the next garbage collection
     */
    public function __construct(private readonly mixed $source, private ?PendingCommand $command)
    {
        $this->changed = new Condition();
        $this->fiber = new CallbackFiber();
    }

    /**
     * Handles a frame INPUT_ACCEPTED of the launcher. The payload is the number of bytes that the command's input pipe
     * has accepted since the previous frame. 0xFFFFFFFF means that the command reads no more input. The first frame
     * acknowledges 0 bytes, and starts {@see feed()}.
     */
    public function onAcknowledgement(string $payload): void
    {
        /** @var array{1: int} $bytes */
        $bytes = unpack('V', $payload);
        if ($bytes[1] === 0xFFFFFFFF) {
            $this->stop();

            return;
        }
        if (!$this->isStarted && $this->command !== null) {
            $this->isStarted = true;
            EventLoop::queue($this->fiber->run(...), $this->feed(...));
        }
        $this->unacknowledged -= $bytes[1];
        if ($this->isWaitingForWindow && $this->unacknowledged < $this->window()) {
            $this->changed->notify();
        }
    }

    /** Stops reading the source, for example because the command reads no more input. */
    public function stop(): void
    {
        $this->command = null;
        EventLoop::cancel($this->readWatcher); // the caller may read or close the stream now
        $this->restoreMode();
        $this->changed->notify();
    }

    private function feed(): void
    {
        try {
            foreach ($this->pieces() as $piece) {
                $size = \strlen($piece);
                $partBytes = min(self::MAX_PIECE_BYTES, $this->window());
                for ($at = 0; $at < $size && $this->command !== null; $at += $partBytes) {
                    $part = $size <= $partBytes ? $piece : substr($piece, $at, $partBytes);
                    $this->unacknowledged += \strlen($part);
                    $this->command->sendInput($part);
                    if ($this->unacknowledged >= $this->window()) {
                        $this->isWaitingForWindow = true;
                        $this->wait();
                        $this->isWaitingForWindow = false;
                    }
                }
                if ($this->command === null) {
                    return;
                }
            }
            $this->command?->endInput();
        } catch (\Throwable $thrown) {
            $this->command?->fail($thrown, is_iterable($this->source));
        }
    }

    private function window(): int
    {
        return $this->command?->launcher->inputWindow ?? LauncherProtocol::INPUT_WINDOW;
    }

    /** @return iterable<mixed, string> */
    private function pieces(): iterable
    {
        $source = $this->source;

        return match (true) {
            \is_string($source) => [$source],
            is_iterable($source) => $this->checkedPieces($source),
            default => $this->read(self::ensureOpen($source)),
        };
    }

    /**
     * @param resource $stream watched by the event loop if that is possible
     *
     * @return \Generator<int, string>
     */
    private function read(mixed $stream): \Generator
    {
        $isWatched = FileType::canBeWatched($stream);
        // In blocking mode, fread() waits for all requested bytes of a named pipe or terminal, for a whole record of a
        // TLS connection, and for at least one byte of a stream that is not watched.
        $meta = stream_get_meta_data($stream);
        $mayBlock = $isWatched
            ? $meta['stream_type'] === 'STDIO' || isset($meta['crypto'])
            : !FileType::isAlwaysReady($stream);
        if ($mayBlock && $meta['blocked']) {
            $isChanged = Warnings::suppressed(static fn(): bool => stream_set_blocking($stream, false));
            $this->madeNonBlocking = $isChanged ? $stream : null;
        }
        try {
            while (!feof(self::ensureOpen($stream))) {
                if ($isWatched) {
                    $this->awaitReadable($stream);
                }
                if ($this->command === null) {
                    return;
                }
                error_clear_last();
                $piece = Warnings::readApplicationStream(self::ensureOpen($stream), self::MAX_PIECE_BYTES);
                if ($piece === false) {
                    throw StreamException::fromStream();
                }
                if ($piece !== '') {
                    yield $piece;
                } elseif (!$isWatched && !feof($stream)) {
                    $this->changed->waitFor(self::EMPTY_READ_PAUSE_SECONDS);
                }
            }
        } finally {
            $this->restoreMode();
        }
    }

    private function restoreMode(): void
    {
        if (\is_resource($this->madeNonBlocking)) {
            stream_set_blocking($this->madeNonBlocking, true);
        }
        $this->madeNonBlocking = null;
    }

    /** @return resource */
    private static function ensureOpen(mixed $stream): mixed
    {
        return \is_resource($stream) ? $stream : throw StreamException::closedInput();
    }

    /**
     * @param iterable<mixed, mixed> $source
     *
     * @return \Generator<int, string>
     */
    private function checkedPieces(iterable $source): \Generator
    {
        $command = $this->command?->command;
        try {
            foreach ($source as $piece) {
                if (!\is_string($piece)) {
                    $type = get_debug_type($piece);

                    throw new \ValueError(
                        "A command's input must yield strings, not {$type}. Command: {$command?->summary()}",
                    );
                }
                yield $piece;
            }
        } catch (\Exception $thrown) {
            // If the generator was already used, PHP throws an exception in the loop above, thus in this file.
            if (!$source instanceof \Generator || $thrown->getFile() !== __FILE__) {
                throw $thrown;
            }

            throw new \ValueError(
                "A command's input is a generator that was already used. Pass a new generator for each command."
                    . " Command: {$command?->summary()}",
                previous: $thrown,
            );
        }
    }

    /** @param resource $stream */
    private function awaitReadable(mixed $stream): void
    {
        $this->readWatcher = EventLoop::onReadable($stream, $this->changed->notify(...));
        try {
            $this->wait();
        } finally {
            EventLoop::cancel($this->readWatcher);
        }
    }

    private function wait(): void
    {
        if ($this->command !== null) {
            $this->changed->wait();
        }
    }
}
