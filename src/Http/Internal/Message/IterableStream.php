<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\ClientLeftException;

/** A body produced while it is sent. Each read returns one piece, or the requested part of it. */
final class IterableStream implements StreamInterface
{
    use ForwardOnly;

    /** Maximum number of empty pieces that one read skips. Then it returns '', so that other fibers get a turn. */
    private const MAX_EMPTY_PIECES = 100;

    /** @var \Iterator<mixed, string>|null null after its end */
    private ?\Iterator $chunks;

    private bool $started = false;

    /** Whether a fiber is running the iterator, perhaps suspended. */
    private bool $running = false;

    /** The current piece, until all of it was read. */
    private string $piece = '';

    /** Read offset into the piece. */
    private int $offset = 0;

    private int $position = 0;

    /** @param iterable<string> $chunks */
    public function __construct(iterable $chunks)
    {
        while ($chunks instanceof \IteratorAggregate) {
            $chunks = $chunks->getIterator();
        }
        $this->chunks = match (true) {
            \is_array($chunks) => new \ArrayIterator($chunks),
            $chunks instanceof \Iterator => $chunks,
            default => new \IteratorIterator($chunks),
        };
    }

    public function read(int $length): string
    {
        for ($tries = self::MAX_EMPTY_PIECES; $this->piece === '' && $this->chunks !== null && $tries > 0; --$tries) {
            $this->advance($this->chunks);
        }
        $bytes = substr($this->piece, $this->offset, $length);
        $this->offset += \strlen($bytes);
        $this->position += \strlen($bytes);
        if ($this->offset === \strlen($this->piece)) {
            [$this->piece, $this->offset] = ['', 0];
        }

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->piece === '' && $this->chunks === null;
    }

    public function tell(): int
    {
        return $this->position;
    }

    /** Runs a generator to its end after its last byte was read. Further pieces are dropped. */
    public static function finish(StreamInterface $body): void
    {
        $body instanceof self && !$body->eof() ? $body->read(1) : null;
    }

    /** Ends a generator at its `yield`. Suspends if its `finally` blocks do. */
    public function close(): void
    {
        [$chunks, $this->chunks, $this->piece, $this->offset] = [$this->chunks, null, '', 0];
        if ($chunks !== null && $this->started && !$this->running) {
            self::endGenerator($chunks);
        }
    }

    /** @param \Iterator<mixed, string> $chunks */
    private function advance(\Iterator $chunks): void
    {
        $this->running = true;
        try {
            $this->started ? $chunks->next() : $chunks->rewind();
        } finally {
            [$this->started, $this->running] = [true, false];
        }
        if ($this->chunks === null) {
            self::endGenerator($chunks); // the stream was closed during the wait

            return;
        }
        if ($chunks->valid()) {
            $this->piece = $chunks->current();
        } else {
            $this->chunks = null;
        }
    }

    /**
     * Throws into a generator, so that its `finally` blocks may suspend; destroyed, they can't before PHP 8.4.
     *
     * @param \Iterator<mixed, string> $chunks
     */
    private static function endGenerator(\Iterator $chunks): void
    {
        try {
            $chunks instanceof \Generator && $chunks->valid() ? $chunks->throw(ClientLeftException::closed()) : null;
        } catch (ClientLeftException) {
        }
    }
}
