<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Internal\Async\Condition;

/** Keeps the blocks that a job of --round-robin has not read. */
final class BlockQueue
{
    /** A queue that holds at least this number of bytes gets no further block. */
    private const MAX_BYTES = 1 << 16;

    /** @var list<string|int> blocks, or their numbers in $files */
    private array $blocks = [];

    private int $bytes = 0;

    /** Bytes of the blocks in memory: the waiting ones, and the one that the job reads now. */
    public int $memoryBytes = 0;
    private bool $isClosed = false;
    private ?\Throwable $failure = null;
    private readonly Condition $changed;

    /**
     * @param InputWait  $wait  woken when the queue has room again
     * @param BlockFiles $files stores the blocks for which there is no memory
     */
    public function __construct(private readonly InputWait $wait, private readonly BlockFiles $files)
    {
        $this->changed = new Condition();
    }

    public function hasRoom(): bool
    {
        return $this->bytes < self::MAX_BYTES;
    }

    /**
     * @param int|null $file number of a new file for the block; null to keep the block in memory
     *
     * @throws OutputFailedException when the file can't be written
     */
    public function add(string $block, ?int $file = null): void
    {
        if ($file === null) {
            $this->memoryBytes += \strlen($block);
        } else {
            $this->files->write($file, [$block]);
        }
        $this->blocks[] = $file ?? $block;
        $this->bytes += \strlen($block);
        $this->changed->notify();
    }

    /**
     * Ends the job's input after the queued blocks. If a $failure is given, {@see read()} drops the queued blocks and
     * throws the $failure.
     */
    public function close(?\Throwable $failure = null): void
    {
        $this->isClosed = true;
        $this->failure ??= $failure;
        $this->changed->notify();
    }

    /** @return \Generator<int, string> the blocks, until the queue is empty and closed */
    public function read(): \Generator
    {
        while (true) {
            while ($this->blocks === [] && !$this->isClosed) {
                $this->changed->wait();
            }
            if ($this->failure !== null) {
                throw $this->failure;
            }
            if ($this->blocks === []) {
                return;
            }
            $blocks = $this->blocks;
            $this->blocks = [];
            $this->bytes = 0;
            while (($block = array_shift($blocks)) !== null) {
                yield from \is_int($block) ? $this->files->read($block) : self::pieces($block);
                $this->memoryBytes -= \is_int($block) ? 0 : \strlen($block);
            }
            $this->wait->wake();
        }
    }

    /**
     * Yields a block in pieces, because the reader keeps the last piece while it waits for the next block.
     *
     * @return \Generator<int, string>
     */
    private static function pieces(string $block): \Generator
    {
        for ($at = 0; $at < \strlen($block); $at += BlockFiles::READ_SIZE) {
            yield substr($block, $at, BlockFiles::READ_SIZE);
        }
    }
}
