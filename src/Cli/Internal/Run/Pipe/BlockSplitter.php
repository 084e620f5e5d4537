<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\FreeMemory;

/** Splits input that arrives in pieces of any size into blocks of whole records, at the same places as GNU parallel. */
final class BlockSplitter
{
    /** Largest size of a block in bytes, as in GNU parallel. */
    public const MAX_BLOCK_BYTES = (2 << 30) - 1;

    private const GROWTH = 1.3;

    /** Largest size of a buffer in bytes for which the free memory is not checked. */
    private const MAX_UNCHECKED_BYTES = 4 << 20;

    private string $buffer = '';

    /** Position in the buffer of the first byte that was not yielded. */
    private int $start = 0;

    private int $droppedBytes = 0;

    private int $yieldedBytesOfBlock = 0;

    private int $nextPieceBytes;

    /**
     * @param int  $blockBytes maximum bytes of a block; this maximum grows when a record or a group is longer
     * @param int  $groupSize  number of records that stay together (a group); 0 if a block may end after any record
     * @param bool $isOneGroup true for one group in each block; false for as many groups as fit into $blockBytes
     * @param int  $pieceBytes a longer block is yielded in pieces of about this size, if $ends can find where to cut
     */
    public function __construct(
        private readonly RecordEnds $ends,
        private int $blockBytes,
        private readonly int $groupSize = 0,
        private readonly bool $isOneGroup = false,
        private readonly int $pieceBytes = \PHP_INT_MAX,
    ) {
        $this->nextPieceBytes = $pieceBytes;
    }

    /**
     * @return \Generator<bool, string> pieces of blocks; the key is true for the last piece of a block
     *
     * @throws UsageException when a record or a group exceeds {@see MAX_BLOCK_BYTES} or the free memory, or a regular
     *                        expression fails
     */
    public function push(string $bytes): \Generator
    {
        if ($this->start > 0) {
            $this->buffer = substr($this->buffer, $this->start);
            $this->droppedBytes += $this->start;
            $this->start = 0;
        }
        $this->checkMemory(\strlen($this->buffer) + \strlen($bytes));
        $this->buffer .= $bytes; // PHP appends without a copy. A copy for each piece would take quadratic time.
        while (\strlen($this->buffer) - $this->start >= $this->blockBytes - $this->yieldedBytesOfBlock) {
            if (!yield from $this->cut($this->start + $this->blockBytes - $this->yieldedBytesOfBlock)) {
                $this->grow();
            }
        }
        $size = \strlen($this->buffer) - $this->start;
        if ($this->groupSize === 0 && $size >= $this->nextPieceBytes) {
            $end = $this->ends->certain($this->buffer, $this->start);
            $isFound = $end > $this->start;
            $this->nextPieceBytes = $isFound ? $this->pieceBytes : 2 * $size;
            if ($isFound) {
                $this->yieldedBytesOfBlock += $end - $this->start;
                yield false => $this->take($end);
            }
        }
    }

    public function position(): int
    {
        return $this->droppedBytes + $this->start;
    }

    /**
     * @return \Generator<bool, string> the remaining blocks, as {@see push()} yields them
     *
     * @throws UsageException
     */
    public function end(): \Generator
    {
        if ($this->groupSize > 0) {
            yield from $this->cut(\strlen($this->buffer));
        }
        if ($this->start < \strlen($this->buffer) || $this->yieldedBytesOfBlock > 0) {
            yield true => $this->take(\strlen($this->buffer));
        }
    }

    /** @return \Generator<bool, string, mixed, bool> blocks that end at or before $limit; returns whether one ended */
    private function cut(int $limit): \Generator
    {
        $before = $this->start;
        if ($this->groupSize === 0) {
            $end = $this->ends->last($this->buffer, $this->start, $limit);
        } else {
            $end = $this->start;
            while (($next = $this->ends->next($this->buffer, $end, $limit, $this->groupSize)) !== null) {
                $end = $next;
                if ($this->isOneGroup) {
                    yield true => $this->take($end);
                }
            }
        }
        if ($end === $this->start && $this->yieldedBytesOfBlock === 0) {
            return $end > $before;
        }
        $this->yieldedBytesOfBlock = 0;
        yield true => $this->take($end);

        return true;
    }

    private function take(int $end): string
    {
        $block = substr($this->buffer, $this->start, $end - $this->start);
        $this->start = $end;

        return $block;
    }

    /** @throws UsageException when the memory does not suffice for this number of bytes and for copies of a block */
    private function checkMemory(int $bytes): void
    {
        $copies = $this->isOneGroup ? 1 : 3; // a regular expression and --rrs make one more copy each
        if ($bytes > self::MAX_UNCHECKED_BYTES && !(new FreeMemory())->allows($copies * $bytes)) {
            throw new UsageException(\sprintf(
                'option --block: a block, record or group of %d bytes or more does not fit into the free memory: %s;'
                    . ' give a smaller --block, another --recend, or a higher limit (php -d memory_limit=2G)',
                $bytes,
                FreeMemory::usage(),
            ));
        }
    }

    private function grow(): void
    {
        if ($this->blockBytes === self::MAX_BLOCK_BYTES) {
            throw new UsageException(\sprintf(
                'option --block: a record or group is longer than %d bytes, the largest block; give another --recend',
                self::MAX_BLOCK_BYTES,
            ));
        }
        $this->blockBytes = min((int) ceil($this->blockBytes * self::GROWTH) + 1, self::MAX_BLOCK_BYTES);
    }
}
