<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Revolt\EventLoop;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobInputs;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Internal\FreeMemory;

/**
 * Implements --round-robin: distributes the blocks of standard input among N jobs that all run at the same time. Each
 * of the first N blocks creates a job. A fiber gives each later block to the next job whose queue has room.
 */
final class RoundRobinInputs implements JobInputs
{
    use HasNumberedJobs;

    /**
     * Maximum bytes in memory of the blocks of all jobs. An eighth of memory_limit is another maximum, because PHP can
     * need twice the size of a block.
     */
    private const MAX_MEMORY_BYTES = 32 << 20;

    /** @var array<int, BlockQueue> queues of unfinished jobs, by job number */
    private array $queues = [];

    /** @var array<int, int> number of bytes that each job got, by job number */
    private array $sent = [];

    private int $jobCount = 0;
    /** Number of the job that got the last block from {@see distribute()}; 0 if no job got one. */
    private int $last = 0;

    private bool $isReading = true;

    /** Whether {@see jobs()} creates no more jobs, so that {@see distribute()} reads the remaining blocks. */
    private bool $isComplete = false;

    /** Whether the input ended, or the caller stopped reading {@see jobs()}, before there were enough jobs. */
    private bool $hasEndedEarly = false;

    private ?InputWait $wait = null;

    private int $lastFile = 0;

    public function __construct(private readonly Blocks $blocks, private readonly BlockFiles $files) {}

    /** Returns 0: all jobs run at the same time, so no job is created in advance. */
    public function lookahead(): int
    {
        return 0;
    }

    public function jobs(InputWait $wait, \Closure $concurrency): \Generator
    {
        $this->wait = $wait;
        $wait->onStop($this->closeQueues(...));
        $failure = null;
        try {
            $blocks = $this->blocks->read($wait);
            EventLoop::queue($this->distribute(...), $blocks, $wait, $concurrency);
            for (; $blocks->valid() && !$wait->isStopped(); $blocks->next()) {
                $number = ++$this->jobCount;
                $this->queues[$number] = new BlockQueue($wait, $this->files);
                $this->add($number, $this->blocks->header . $blocks->current());
                $this->isReading = false;
                $this->isComplete = $number >= $concurrency();
                $wait->wake();
                yield $number => JobValues::of(['']);
                if ($this->isComplete) {
                    return;
                }
                $this->isReading = true;
            }
        } catch (\Throwable $failure) {
            throw $failure;
        } finally {
            // Also runs if the caller abandons jobs(). Then distribute() returns at once, and closes no queue.
            if (!$this->isComplete) {
                $this->hasEndedEarly = $this->isComplete = true;
                $this->closeQueues($failure);
                $wait->wake();
            }
        }
    }

    public function withInput(InputJob $job): InputJob
    {
        return $job->withCommand($job->command->withInput($this->queues[$job->sequence]->read()));
    }

    public function describe(string $command): string
    {
        return $command;
    }

    public function finished(InputJob $job): void
    {
        $job->sent = $this->sent[$job->sequence] ?? 0;
        unset($this->queues[$job->sequence], $this->sent[$job->sequence]);
        $this->wait?->wake();
    }

    public function close(): void
    {
        $this->closeQueues();
        $this->queues = [];
        $this->files->removeAll();
    }

    /**
     * Waits until there are enough jobs, and then distributes the blocks after the current one. With -j FILE, the
     * necessary number can become lower at any time, even while {@see jobs()} creates no job.
     *
     * @param \Generator<bool, string> $blocks
     * @param \Closure(): int         $concurrency
     */
    private function distribute(\Generator $blocks, InputWait $wait, \Closure $concurrency): void
    {
        $hasEnough = fn(): bool => !$this->isReading && $this->jobCount >= $concurrency();
        $wait->until(fn(): bool => $this->isComplete || $hasEnough());
        if ($this->hasEndedEarly || $wait->isStopped()) {
            return;
        }
        $this->isComplete = true;
        try {
            for ($blocks->next(); $blocks->valid(); $blocks->next()) {
                $wait->until(fn(): bool => $this->queues === [] || $this->nextWithRoom() !== null);
                $next = $this->nextWithRoom();
                if ($next === null) {
                    break;
                }
                $this->add($next, $blocks->current());
                $this->last = $next;
            }
            $this->closeQueues();
        } catch (\Throwable $failure) {
            $this->closeQueues($failure);
        }
    }

    private function add(int $number, string $block): void
    {
        $memory = \strlen($block);
        foreach ($this->queues as $queue) {
            $memory += $queue->memoryBytes;
        }
        $fits = $memory <= intdiv(FreeMemory::quarterOfLimit(2 * self::MAX_MEMORY_BYTES), 2);
        $this->queues[$number]->add($block, $fits ? null : ++$this->lastFile);
        $this->sent[$number] = ($this->sent[$number] ?? 0) + \strlen($block);
    }

    /** Returns the number of the next job, in rotation, whose queue has room; null for none. */
    private function nextWithRoom(): ?int
    {
        for ($i = 1; $i <= $this->jobCount; ++$i) {
            $number = ($this->last + $i - 1) % $this->jobCount + 1;
            if (isset($this->queues[$number]) && $this->queues[$number]->hasRoom()) {
                return $number;
            }
        }

        return null;
    }

    private function closeQueues(?\Throwable $failure = null): void
    {
        foreach ($this->queues as $queue) {
            $queue->close($failure);
        }
    }
}
