<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\ClientDisconnectedException;

/** A body that is produced while it is sent. read() returns at most one piece, even if more bytes were requested. */
final class IterableStream implements JoiningStream
{
    use PositionedStream;

    /** Maximum empty pieces that one read skips. Then read() returns '', so the caller can let other fibers run. */
    private const MAX_EMPTY_PIECES = 100;

    private const MAX_JOINED_BYTES = 16_384;

    /** Minimum nanoseconds of a pcntl_fork(). An iterator that yields sooner has not forked the process. */
    private const MIN_FORK_NANOSECONDS = 20_000;

    /** @var \Iterator<mixed, mixed>|null null after the iterator's end, and when the stream is closed */
    private ?\Iterator $pieces;

    private bool $started = false;

    private bool $running = false;

    /** The current piece; '' after all of it was read. */
    private string $piece = '';

    private int $offset = 0;

    private string $joined = '';

    /** Time by hrtime() until which the current {@see readJoined()} joins pieces. */
    private int $joinUntil = 0;

    private readonly int|false $pid;

    /** @param iterable<string> $pieces */
    public function __construct(iterable $pieces)
    {
        $this->pid = getmypid();
        while ($pieces instanceof \IteratorAggregate) {
            $pieces = $pieces->getIterator();
        }
        $this->pieces = match (true) {
            \is_array($pieces) => new \ArrayIterator($pieces),
            $pieces instanceof \Iterator => $pieces,
            default => new \IteratorIterator($pieces),
        };
    }

    public function read(int $length): string
    {
        for ($tries = self::MAX_EMPTY_PIECES; $this->piece === '' && $this->pieces !== null && $tries > 0; --$tries) {
            $this->advance($this->pieces);
        }
        $bytes = substr($this->piece, $this->offset, $length);
        $this->offset += \strlen($bytes);
        $this->position += \strlen($bytes);
        if ($this->offset === \strlen($this->piece)) {
            [$this->piece, $this->offset] = ['', 0];
        }

        return $bytes;
    }

    public function readJoined(int $length, int $until): string
    {
        $this->joinUntil = $until;
        $readAt = (int) hrtime(true);
        $first = $this->joined = $this->read($length);
        if ($first === '') {
            return '';
        }
        $max = min($length, self::MAX_JOINED_BYTES);
        while ($this->pieces !== null && \strlen($this->joined) < $max) {
            $now = (int) hrtime(true);
            if ($now >= $this->joinUntil || $now - $readAt > self::MIN_FORK_NANOSECONDS && getmypid() !== $this->pid) {
                break;
            }
            $readAt = $now;
            $this->advance($this->pieces);
            $size = \strlen($this->piece);
            if ($size === 0 || $this->joinUntil === 0 || \strlen($this->joined) + $size > $max) {
                break;
            }
            $this->joined .= $this->piece;
            $this->position += $size;
            $this->piece = '';
        }
        $bytes = $this->takeJoined();

        return $bytes !== '' ? $bytes : $this->read($length); // another fiber took $joined during a suspension
    }

    public function takeJoined(): string
    {
        [$bytes, $this->joined, $this->joinUntil] = [$this->joined, '', 0];

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->piece === '' && $this->pieces === null;
    }

    /**
     * Lets a generator run the code after its last `yield`, by trying to read one more byte. Callers that stop at the
     * announced length must call this method, because no other read resumes the generator.
     */
    public static function finish(StreamInterface $body): void
    {
        $body instanceof self && !$body->eof() ? $body->read(1) : null;
    }

    public function excess(?int $length): ?LengthExcess
    {
        $produced = $this->position + \strlen($this->piece) - $this->offset; // substr() would copy the piece

        return $length !== null && $produced > $length ? new LengthExcess($length, $produced) : null;
    }

    /**
     * Ends the generator at its current `yield`. If the generator's `finally` blocks suspend, close() suspends too.
     * A generator that is running ends later, at its next `yield`.
     */
    public function close(): void
    {
        [$pieces, $this->pieces, $this->piece, $this->offset, $this->joined] = [$this->pieces, null, '', 0, ''];
        if ($pieces !== null && $this->started && !$this->running) {
            self::endGenerator($pieces);
        }
    }

    /** @param \Iterator<mixed, mixed> $pieces */
    private function advance(\Iterator $pieces): void
    {
        if ($this->running) {
            throw new \LogicException('Another fiber is reading this body, which can be read only once');
        }
        $this->running = true;
        try {
            $this->started ? $pieces->next() : $pieces->rewind();
        } finally {
            $this->started = true;
            $this->running = false;
        }
        if ($this->pieces === null) {
            self::endGenerator($pieces); // the stream was closed while the iterator ran

            return;
        }
        if (!$pieces->valid()) {
            $this->pieces = null;

            return;
        }
        $piece = $pieces->current();
        if (!\is_string($piece)) {
            throw new \UnexpectedValueException(
                'A piece of a body has the type ' . get_debug_type($piece)
                    . ' instead of string. Yield (string) $value',
            );
        }
        $this->piece = $piece;
    }

    /**
     * Ends a generator with an exception, so that its `finally` blocks can suspend. Before PHP 8.4, these blocks can't
     * suspend when PHP destroys the generator.
     *
     * @param \Iterator<mixed, mixed> $pieces
     */
    private static function endGenerator(\Iterator $pieces): void
    {
        try {
            if ($pieces instanceof \Generator && $pieces->valid()) {
                $pieces->throw(ClientDisconnectedException::closed());
            }
        } catch (ClientDisconnectedException) {
        }
    }
}
