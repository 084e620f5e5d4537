<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Command\CommandResult;
use Spindle\Command\SpoolException;

/** The option --keep-order: results wait here for the results of earlier jobs. */
final class OutputOrder
{
    /** Waiting results, and bytes of their inputs and commands, at which the input waits too. */
    private const MAX_WAITING_RESULTS = 1000;
    private const MAX_WAITING_BYTES = 16 << 20;

    /** Large results per temporary file. More would save descriptors, fewer would save disk space. */
    private const MAX_RESULTS_PER_FILE = 50;

    /** @var \SplQueue<InputJob> jobs whose result was not returned yet, in order */
    private \SplQueue $jobs;

    /** @var array<int, CommandResult|null> early results by sequence; null for a job without a result */
    private array $early = [];
    private int $bytes = 0;

    /** @var resource|null holds the large outputs of early results; each result keeps it open too */
    private mixed $file = null;
    private int $resultsInFile = 0;

    public function __construct()
    {
        $this->jobs = new \SplQueue();
    }

    public function isFull(): bool
    {
        return \count($this->early) >= self::MAX_WAITING_RESULTS || $this->bytes >= self::MAX_WAITING_BYTES;
    }

    public function expect(InputJob $job): void
    {
        $this->jobs->enqueue($job);
    }

    /**
     * @param CommandResult|null $result null for a job without one, so that later jobs need not wait for it
     *
     * @return \Generator<InputJob, CommandResult> results whose turn has come
     */
    public function finished(InputJob $job, ?CommandResult $result): \Generator
    {
        $this->early[$job->sequence] = $result;
        $this->bytes += self::size($job);
        while (!$this->jobs->isEmpty() && \array_key_exists($this->jobs->bottom()->sequence, $this->early)) {
            yield from $this->next();
        }
        if ($result !== null && \array_key_exists($job->sequence, $this->early)) {
            $this->moveToSharedFile($result);
        }
    }

    /** @return \Generator<InputJob, CommandResult> results that wait for jobs which will have none */
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
            if ($this->file === null || $this->resultsInFile >= self::MAX_RESULTS_PER_FILE) {
                $this->file = TemporaryFile::open();
                stream_set_write_buffer($this->file, 0);
                $this->resultsInFile = 0;
            }
            ++$this->resultsInFile;
            $result->moveOutput($this->file);
        } catch (OutputFailedException|SpoolException) {
            // The disk may be full: the output stays in its own files.
        }
    }

    /** @return \Generator<InputJob, CommandResult> */
    private function next(): \Generator
    {
        $job = $this->jobs->dequeue();
        $result = $this->early[$job->sequence] ?? null;
        if (\array_key_exists($job->sequence, $this->early)) {
            $this->bytes -= self::size($job);
            unset($this->early[$job->sequence]);
        }
        if ($this->early === []) {
            $this->file = null;
        }
        if ($result !== null) {
            yield $job => $result;
        }
    }

    private static function size(InputJob $job): int
    {
        return \strlen($job->input) + \strlen($job->text);
    }
}
