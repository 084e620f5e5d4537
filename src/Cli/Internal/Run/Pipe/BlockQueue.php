<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Internal\Async\Condition;

/** Holds the blocks that one job has not read yet, in their order. */
final class BlockQueue
{
    /** A queue that holds at least this number of bytes gets no further block. */
    private const MAX_BYTES = 1 << 16;

    /** @var list<string> */
    private array $blocks = [];

    private int $bytes = 0;
    private bool $isClosed = false;
    private ?\Throwable $failure = null;
    private readonly Condition $changed;

    /** @param InputWait $wait woken when the queue has room again */
    public function __construct(private readonly InputWait $wait)
    {
        $this->changed = new Condition();
    }

    public function hasRoom(): bool
    {
        return $this->bytes < self::MAX_BYTES;
    }

    public function add(string $block): void
    {
        $this->blocks[] = $block;
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
            foreach ($blocks as $block) {
                yield $block;
            }
            $this->wait->wake();
        }
    }
}
