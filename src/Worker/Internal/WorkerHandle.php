<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/** What the pool knows of a worker. */
final class WorkerHandle
{
    /** Bytes of what was written to a standard error that are kept. */
    public const STDERR_TAIL = 8192;

    public ?Link $link = null;

    /** Its process, which it tells when it comes; 0 before. */
    public int $pid = 0;
    public ?Mark $mark = null;

    /** It may be given tasks. */
    public bool $ready = false;

    /** It is told to stop when it has nothing left to do; and has been told. */
    public bool $retiring = false;
    public bool $stopping = false;

    /** @var (\Closure(Batch, int): \Throwable)|null what becomes of the task that runs, once it was made to end */
    public ?\Closure $ending = null;

    /** @var array{Batch, int}|null the task that it was made to end for */
    public ?array $condemned = null;

    /** @var list<Batch> sent and not done, in the order it works on them */
    public array $batches = [];
    public int $lastBatch = 0;

    /** @var array<int, true> sources whose code it has */
    public array $codes = [];

    /** Tasks that it has run, since when it is ready, in nanoseconds of {@see hrtime()}, and how much memory it had then and had last, in bytes. */
    public int $tasks = 0;
    public int $readyAt = 0;
    public int $memoryAtFirst = 0;
    public int $memory = 0;
    public int $memoryPeak = 0;

    public string $stderr = '';

    /** Why it can't be made ready. */
    public ?WorkerStartException $startFailure = null;

    /** What it said before its end: the text of a fatal error, or '' for exit(). */
    public ?string $lastWords = null;

    /** @var array{?int, ?int, int}|null exit code, signal and memory peak */
    public ?array $exit = null;

    /** @var \WeakReference<Stream>|null of the task that runs; its index, and its batch */
    public ?\WeakReference $stream = null;
    public int $streaming = -1;
    public ?Batch $streamOf = null;

    /** When it had nothing more to do, in nanoseconds of {@see hrtime()}. */
    public int $idleSince = 0;

    /** @var array<string> identifiers of timers that are about it */
    public array $timers = [];
    public bool $timed = false;

    public function __construct(public readonly int $id, public readonly int $markKey, public readonly Crew $crew) {}

    /** @param string $payload of READY */
    public function isMadeReady(string $payload): void
    {
        /** @var array{memory: int} $words */
        $words = unpack('Pmemory', $payload);
        $this->ready = true;
        $this->readyAt = hrtime(true);
        $this->memoryAtFirst = $this->memory = $words['memory'];
    }

    /** @param string $payload of LAST_WORDS */
    public function spoke(string $payload): void
    {
        /** @var array{peak: int, fatal: int} $words */
        $words = unpack('Ppeak/Cfatal', $payload);
        $this->memoryPeak = max($this->memoryPeak, $words['peak']);
        $this->lastWords = substr($payload, 9);
    }

    /** What it works on. */
    public function first(): ?Batch
    {
        return $this->batches[0] ?? null;
    }

    /** It gets no more tasks. */
    public function isLeaving(): bool
    {
        return $this->retiring || $this->ending !== null;
    }

    public function isIdle(): bool
    {
        return $this->ready && $this->batches === [] && !$this->isLeaving();
    }

    public function wrote(string $error): void
    {
        $this->stderr = substr($this->stderr . $error, -self::STDERR_TAIL);
    }

    /** How many tasks of a batch it has started, as far as can be known. */
    public function started(Batch $batch): int
    {
        $count = \count($batch->tasks);
        if ($this->mark !== null) {
            return max($batch->arrived, $this->mark->started($batch->id, $count));
        }

        // It sends each result before it starts the next task.
        return $batch === ($this->batches[0] ?? null) ? min($count, $batch->arrived + 1) : 0;
    }

    /** @return array{Batch, int}|null the task that it started last of those that it has */
    public function running(): ?array
    {
        foreach (array_reverse($this->batches) as $batch) {
            $started = $this->started($batch);
            if ($started > 0) {
                return [$batch, min($started, \count($batch->tasks)) - 1];
            }
        }

        return null;
    }

    /** Takes back what it has not started of a batch; of what was taken back before, nothing. */
    public function revoke(Batch $batch): int
    {
        $started = $this->mark === null ? $batch->limit : max($batch->arrived, $this->mark->revoke($batch->id, $batch->limit));

        return min($batch->limit, $started);
    }

    /** Whether it has begun any task at all. */
    public function hasBegun(): bool
    {
        return $this->tasks > 0 || $this->running() !== null || $this->hasDiedReading();
    }

    /**
     * Whether its memory was exhausted while it read its first batch, before it began a task of it: the arguments are
     * too large.
     */
    public function hasDiedReading(): bool
    {
        $first = $this->first();

        return $first !== null && $this->ending === null && $this->started($first) === 0
            && preg_match('/^(?:Allowed memory size of|Out of memory)/', $this->lastWords ?? '') === 1;
    }

    /** Whether something from outside ended it, or the process that it was part of, before it began any task. */
    public function wasKilled(): bool
    {
        return $this->startFailure === null && isset($this->exit[1]);
    }

    /** How it has ended, as far as that is known. */
    public function end(): string
    {
        [$exitCode, $signal] = $this->exit ?? [null, null];

        return $signal === null ? 'exit code ' . ($exitCode ?? 'unknown') : "signal {$signal}";
    }

    /** Why nothing came of it. */
    public function failure(): WorkerStartException
    {
        $said = $this->lastWords === '' ? 'exit(' . ($this->exit[0] ?? '') . ')' : $this->lastWords;

        return $this->startFailure ?? WorkerStartException::ended($said ?? $this->end(), $this->stderr);
    }
}
