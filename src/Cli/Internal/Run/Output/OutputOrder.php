<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\TemporaryFile;
use Spindle\Command\CommandResult;
use Spindle\Command\StreamException;

/** Implements --keep-order: keeps an early result until all jobs that precede its job in the input have results. */
final class OutputOrder
{
    /** Limits of {@see isFull()}: number of early results, and bytes of their inputs and commands. */
    private const MAX_EARLY_RESULTS = 1000;
    private const MAX_EARLY_BYTES = 16 << 20;

    /**
     * Maximum number of large results whose outputs share a temporary file. More results per file need fewer
     * descriptors, but a file stays open until all its results have been released.
     */
    private const MAX_RESULTS_PER_FILE = 50;

    /** @var \SplQueue<InputJob> jobs whose result has not been yielded yet, in the order of the input */
    private \SplQueue $jobs;

    /** @var array<int, CommandResult|null> early results by job number; null for a cancelled job */
    private array $early = [];
    private int $earlyBytes = 0;

    /** @var resource|null file with the large outputs of early results; these results also keep the file open */
    private mixed $sharedFile = null;
    private int $sharedFileResults = 0;

    public function __construct()
    {
        $this->jobs = new \SplQueue();
    }

    /** Returns whether there are too many early results, so that the run must wait before it creates more jobs. */
    public function isFull(): bool
    {
        return \count($this->early) >= self::MAX_EARLY_RESULTS || $this->earlyBytes >= self::MAX_EARLY_BYTES;
    }

    /** Adds a job that was created. Called in the order of the input. */
    public function expect(InputJob $job): void
    {
        $this->jobs->enqueue($job);
    }

    /**
     * Adds the result of a finished job, and yields the results that no longer wait for an earlier job.
     *
     * @param CommandResult|null $result null for a cancelled job; later results then do not wait for this job
     *
     * @return \Generator<InputJob, CommandResult> in the order of the input
     */
    public function add(InputJob $job, ?CommandResult $result): \Generator
    {
        $this->early[$job->sequence] = $result;
        $this->earlyBytes += $job->bytes();
        while (!$this->jobs->isEmpty() && \array_key_exists($this->jobs->bottom()->sequence, $this->early)) {
            yield from $this->next();
        }
        if ($result !== null && \array_key_exists($job->sequence, $this->early)) {
            $this->moveToSharedFile($result);
        }
    }

    /**
     * Yields all early results. Must be called after the last call of {@see add()}.
     *
     * @return \Generator<InputJob, CommandResult> in the order of the input
     */
    public function remaining(): \Generator
    {
        while (!$this->jobs->isEmpty()) {
            yield from $this->next();
        }
    }

    private function moveToSharedFile(CommandResult $result): void
    {
        if (!$result->holdsFiles()) {
            return;
        }
        try {
            if ($this->sharedFile === null || $this->sharedFileResults >= self::MAX_RESULTS_PER_FILE) {
                $this->sharedFile = TemporaryFile::open();
                stream_set_write_buffer($this->sharedFile, 0);
                $this->sharedFileResults = 0;
            }
            ++$this->sharedFileResults;
            $result->moveOutput($this->sharedFile);
        } catch (OutputFailedException|StreamException) {
            // The disk may be full. The output then stays in the files of the result.
        }
    }

    /** @return \Generator<InputJob, CommandResult> */
    private function next(): \Generator
    {
        $job = $this->jobs->dequeue();
        $result = $this->early[$job->sequence] ?? null;
        if (\array_key_exists($job->sequence, $this->early)) {
            $this->earlyBytes -= $job->bytes();
            unset($this->early[$job->sequence]);
        }
        if ($this->early === []) {
            $this->sharedFile = null;
        }
        if ($result !== null) {
            yield $job => $result;
        }
    }
}
