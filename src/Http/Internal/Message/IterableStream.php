<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;

/** A body that is made while it is sent: each read gives one piece, or what was asked for of it. */
final class IterableStream implements StreamInterface
{
    use ForwardOnly;

    /** @var \Iterator<mixed, string>|null until it was read to its end or let go */
    private ?\Iterator $chunks;

    private bool $begun = false;

    /** Of the current piece, what was not read yet. */
    private string $rest = '';

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
        while ($this->rest === '' && $this->chunks !== null) {
            $this->advance($this->chunks);
        }
        $bytes = substr($this->rest, 0, $length);
        $this->rest = substr($this->rest, \strlen($bytes));
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->rest === '' && $this->chunks === null;
    }

    public function tell(): int
    {
        return $this->position;
    }

    public function close(): void
    {
        [$this->chunks, $this->rest] = [null, ''];
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
            $this->rest = $chunks->current();
        } else {
            $this->chunks = null;
        }
    }
}
