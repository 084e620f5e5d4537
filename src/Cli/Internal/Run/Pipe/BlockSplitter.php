<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\UsageException;

/** Splits input that arrives in pieces of any size into blocks of whole records, at the same places as GNU parallel. */
final class BlockSplitter
{
    /** Largest size of a block in bytes, as in GNU parallel. */
    public const MAX_BLOCK_BYTES = (2 << 30) - 1;

    /** Factor by which $blockBytes grows for a longer record or group, as in GNU parallel. */
    private const GROWTH = 1.3;

    private string $buffer = '';
    /** Position in the buffer at which the next block starts. */
    private int $start = 0;

    /** Bytes that were removed from the beginning of the buffer. */
    private int $removed = 0;

    /**
     * @param int  $blockBytes maximum bytes of a block; this maximum grows when a record or a group is longer
     * @param int  $groupSize  number of records that stay together (a group); 0 if a block may end after any record
     * @param bool $isOneGroup true for one group in each block; false for as many groups as fit into $blockBytes
     */
    public function __construct(
        private readonly RecordEnds $ends,
        private int $blockBytes,
        private readonly int $groupSize = 0,
        private readonly bool $isOneGroup = false,
    ) {}

    /**
     * @return \Generator<int, string> the blocks that are complete, without meaningful keys
     *
     * @throws UsageException when a record or a group exceeds {@see MAX_BLOCK_BYTES}, or a regular expression fails
     */
    public function push(string $bytes): \Generator
    {
        if ($this->start > 0) {
            $this->buffer = substr($this->buffer, $this->start);
            $this->removed += $this->start;
            $this->start = 0;
        }
        $this->buffer .= $bytes; // PHP appends without a copy. A copy for each piece would take quadratic time.
        while (\strlen($this->buffer) - $this->start >= $this->blockBytes) {
            $before = $this->start;
            yield from $this->cut($this->start + $this->blockBytes);
            if ($this->start === $before) {
                $this->grow();
            }
        }
    }

    /** Returns the number of bytes in all blocks that were yielded so far. */
    public function position(): int
    {
        return $this->removed + $this->start;
    }

    /**
     * @return \Generator<int, string> the remaining blocks
     *
     * @throws UsageException
     */
    public function end(): \Generator
    {
        if ($this->groupSize > 0) {
            yield from $this->cut(\strlen($this->buffer));
        }
        if ($this->start < \strlen($this->buffer)) {
            yield $this->take(\strlen($this->buffer));
        }
    }

    /** @return \Generator<int, string> */
    private function cut(int $limit): \Generator
    {
        if ($this->groupSize === 0) {
            $end = $this->ends->last($this->buffer, $this->start, $limit);
        } else {
            $end = $this->start;
            while (($next = $this->ends->next($this->buffer, $end, $limit, $this->groupSize)) !== null) {
                $end = $next;
                if ($this->isOneGroup) {
                    yield $this->take($end);
                }
            }
        }
        if ($end > $this->start) {
            yield $this->take($end);
        }
    }

    private function take(int $end): string
    {
        $block = substr($this->buffer, $this->start, $end - $this->start);
        $this->start = $end;

        return $block;
    }

    private function grow(): void
    {
        if ($this->blockBytes === self::MAX_BLOCK_BYTES) {
            throw new UsageException(\sprintf(
                'option --block: a record is longer than %d bytes, the largest block; give another --recend',
                self::MAX_BLOCK_BYTES,
            ));
        }
        $this->blockBytes = min((int) ceil($this->blockBytes * self::GROWTH) + 1, self::MAX_BLOCK_BYTES);
    }
}
