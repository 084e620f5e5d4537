<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;

/** A body that is made while it is sent: each read gives one piece, or what was asked for of it. */
final class IterableStream implements StreamInterface
{
    use ForwardOnly;

    /** Pieces without a byte that one read passes over; then it gives nothing, and others can have their turn. */
    private const EMPTY_PIECES = 100;

    /** @var \Iterator<mixed, string>|null until it was read to its end or let go */
    private ?\Iterator $chunks;

    private bool $begun = false;

    /** The current piece, until all of it was read. */
    private string $piece = '';

    /** Where in it that begins which was not read yet. */
    private int $offset = 0;

    private int $position = 0;

    /** @param iterable<string> $chunks */
    public function __construct(iterable $chunks)
    {
        $this->chunks = match (true) {
            \is_array($chunks) => new \ArrayIterator($chunks),
            $chunks instanceof \Iterator => $chunks,
            default => new \IteratorIterator($chunks),
        };
    }

    public function read(int $length): string
    {
        for ($tries = self::EMPTY_PIECES; $this->piece === '' && $this->chunks !== null && $tries > 0; --$tries) {
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

    public function close(): void
    {
        [$this->chunks, $this->piece, $this->offset] = [null, '', 0];
    }

    /** @param \Iterator<mixed, string> $chunks */
    private function advance(\Iterator $chunks): void
    {
        $this->begun ? $chunks->next() : $chunks->rewind();
        $this->begun = true;
        if ($this->chunks === null) {
            return; // it was closed meanwhile
        }
        if ($chunks->valid()) {
            $this->piece = $chunks->current();
        } else {
            $this->chunks = null;
        }
    }
}
