<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\SharedFlags;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\Internal\ValuePacking;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\TaskContext;
use Spindle\Worker\Thrown;

/** Runs the tasks of a worker: receives batches, calls their tasks one after the other, and sends the results. */
final class Worker
{
    /** Longest time for which results stay unsent while further tasks start. A kill loses such results. */
    private const MAX_RESULT_DELAY_NANOSECONDS = 100_000;

    private const TASKS_HEAD_BYTES = 9;

    /** Shortest time that pcntl_fork() takes, in nanoseconds. A task that took less time cannot have forked. */
    private const MIN_FORK_NANOSECONDS = 50_000;

    /** Largest index, encoded for {@see SharedFlags}. If it is marked, all tasks of the batch count as started. */
    private const ALL_STARTED = "\xFF\xFF\xFF\xFF";

    /** @var array<int, string> encoded task indexes for {@see SharedFlags} */
    private static array $indexes = [];

    private readonly ResultBuffer $results;
    private readonly WorkerLifecycle $lifecycle;
    private readonly TaskDecoder $decoder;
    private readonly ItemSender $items;
    private ?\Shmop $sharedMemory = null;

    /** Shared memory in which the worker records when each task starts; null without a time limit. */
    private ?\Shmop $clock = null;

    /** Context of the tasks of the last batch. A next batch with the same attempt number uses the same context. */
    private ?TaskContext $context = null;

    private int $initialMemory = 0;
    private ?InitialState $initialState = null;

    /** Removes callbacks that tasks leave in the event loop; null until this process has loaded Revolt. */
    private ?LoopCallbacks $loop = null;

    /** Longest string that is a plain result. A longer string is packed, or refused because of maxResultBytes. */
    private readonly int $maxPlainBytes;

    /** Whether tasks can have set an alarm, which would kill this process during a later task. */
    private readonly bool $hasAlarm;

    /**
     * @param int    $sharedMemoryKey key of the shared memory, see {@see SharedFlags}; 0 for none
     * @param bool   $timed whether to record in the shared memory when each task starts
     * @param int|null $maxMemoryGrowthBytes bytes of memory growth after which a batch ends early; null for no limit
     * @param bool   $restoresState whether to restore {@see InitialState} after each task
     */
    public function __construct(
        private readonly PoolLink $link,
        #[\SensitiveParameter]
        string $key,
        int $sharedMemoryKey,
        private readonly bool $timed,
        int $maxResultBytes,
        private readonly ?int $maxMemoryGrowthBytes,
        private readonly bool $restoresState,
        private readonly bool $isThread,
    ) {
        $this->maxPlainBytes = min($maxResultBytes, WorkerProtocol::MIN_LONG_STRING_BYTES - 1);
        $this->hasAlarm = !$isThread && \function_exists('pcntl_alarm');
        $this->results = new ResultBuffer($link, $maxResultBytes);
        $this->lifecycle = new WorkerLifecycle($link, $this->results, $sharedMemoryKey, $isThread);
        $this->decoder = new TaskDecoder($this->lifecycle, $key);
        $this->items = new ItemSender($link, $this->lifecycle, $this->results);
    }

    /** Sets up output, exit report and SIGTERM handler. Returns whether the shared memory could be created. */
    public function attach(): bool
    {
        $this->sharedMemory = $this->lifecycle->begin();
        $this->clock = $this->items->clock = $this->timed ? $this->sharedMemory : null;

        return $this->sharedMemory !== null;
    }

    /** @param string|null $code code of the callable to run before the first task; null if there is none */
    public function initialize(?string $code): void
    {
        $code === null ? null : $this->decoder->call($code);
    }

    /** @param string $step what threw, see {@see \Spindle\Worker\WorkerStartException::threw()} */
    public function reportStartFailure(string $step, \Throwable $failure): void
    {
        $this->lifecycle->setEnded();
        $this->link->send(WorkerProtocol::NOT_READY, 0, serialize([$step, Thrown::of($failure)]));
    }

    public function work(): void
    {
        $this->initialState = $this->restoresState ? new InitialState($this->isThread) : null;
        $this->loop = LoopCallbacks::find(true);
        $this->hasAlarm ? pcntl_alarm(0) : null;
        $this->initialMemory = memory_get_usage();
        $this->link->send(WorkerProtocol::READY, 0, pack('P', $this->initialMemory));
        while (($frame = $this->nextFrame()) !== null) {
            [$type, $id, $payload] = $frame;
            $frame = null; // release a large payload early
            if ($type === WorkerProtocol::TASKS) {
                $this->runBatch($id, $payload);
            } elseif ($type === WorkerProtocol::CODE) {
                $this->decoder->addCode($id, $payload);
            } elseif ($type === WorkerProtocol::FORGET) {
                $this->decoder->forgetCode($id);
            } elseif ($type === WorkerProtocol::STOP) {
                break;
            }
            $payload = '';
        }
        $this->lifecycle->setEnded();
    }

    public function reportExit(): void
    {
        $this->lifecycle->reportExit();
    }

    /** @return array{int, int, string}|null {@see PoolLink::receive()} */
    private function nextFrame(): ?array
    {
        $this->lifecycle->isReceiving = true;
        $this->lifecycle->memoryBefore = memory_get_usage();

        return $this->items->shiftFrame() ?? $this->lifecycle->receive();
    }

    private function runBatch(int $batch, string &$payload): void
    {
        /** @var array{code: int, attempt: int} $head */
        $head = unpack('Vcode/Vattempt', $payload);
        $flags = \ord($payload[8]);
        if ($this->context?->attempt !== $head['attempt']) {
            $this->context = new TaskContext($head['attempt'], $this->lifecycle->cancellation(...), $this->report(...));
        }
        TaskContext::enter($this->context);
        $this->results->begin($batch);
        if ($this->sharedMemory !== null) {
            shmop_write($this->sharedMemory, pack('VV', 0, $batch), 0);
        }
        $isEager = $this->sharedMemory === null || ($flags & WorkerProtocol::EAGER) !== 0;
        $maxDelay = $isEager ? 0 : self::MAX_RESULT_DELAY_NANOSECONDS;
        $this->runTasks($head['code'], $maxDelay, ...$this->itemsOf($payload, $flags));
        $this->hasAlarm ? pcntl_alarm(0) : null;
        $this->lifecycle->repairOutput();
        $this->lifecycle->flush(WorkerProtocol::DONE);
        TaskContext::enter(null);
    }

    /** @return array{string, array<int, bool|int|float|string|null>} kinds and items; `$payload` is '' afterwards */
    private function itemsOf(string &$payload, int $flags): array
    {
        $items = ($flags & WorkerProtocol::PACKED) !== 0
            ? ValuePacking::decode($payload, self::TASKS_HEAD_BYTES)
            : ['', ValuePacking::decodeList($payload, self::TASKS_HEAD_BYTES)];
        $payload = ''; // frees memory
        $this->lifecycle->isReceiving = false;

        return $items;
    }

    /**
     * Runs the tasks of a batch. In the loop, each further function call would take longer than a tiny task. So the
     * loop calls {@see finishTask()} only if necessary. If tasks have no time limit, the loop calls
     * {@see checkBefore()} at most once in SharedFlags::LIMIT_CHECK_NANOSECONDS.
     *
     * @param string                                 $kinds    kind of each item, as a byte; '' for plain arguments
     * @param array<int, bool|int|float|string|null> $items    arguments or tasks. The caller must keep no copy: a copy
     *     would keep each item in memory after the item's task
     * @param int                                    $maxDelay nanoseconds that a result may wait for later results: 0
     *     or MAX_RESULT_DELAY_NANOSECONDS
     */
    private function runTasks(int $code, int $maxDelay, string $kinds, array $items): void
    {
        $indexes = self::encodedIndexes(\count($items));
        $sharedMemory = $this->sharedMemory;
        $isPlain = $code !== 0 && $kinds === '';
        // If true, finishTask() runs after each task. If false, the loop only adds the results, which is faster.
        $checksEach = !$isPlain || $this->clock !== null || $maxDelay === 0 || $this->initialState !== null;
        $values = &$this->results->values; // a reference: if a task ends the process, reportExit() sends the results
        $cancellation = &$this->lifecycle->cancellation;
        $startedAt = $this->results->flushedAt;
        $this->lifecycle->setState(WorkerLifecycle::RUNNING_TASK);
        for ($i = $nextCheck = 0, $limit = \count($items), $task = null, $loop = $this->loop; $i < $limit; ++$i) {
            if ($sharedMemory !== null) { // write the mark, then read the clock, then the limit: see SharedFlags
                shmop_write($sharedMemory, $indexes[$i], 0);
            }
            $now = hrtime(true);
            if ($now > $nextCheck) {
                [$limit, $now, $nextCheck] = $this->checkBefore($i, $limit, $now, $startedAt, $maxDelay);
                $loop = $this->loop;
                if ($i >= $limit) {
                    break; // the remaining tasks return to the pool
                }
            }
            $startedAt = $now;
            try {
                $value = $isPlain
                    ? ($task ??= $this->decoder->mapTask($code))($items[$i])
                    : $this->runPacked($code, \ord($kinds[$i]), (string) $items[$i]);
                if (\is_int($value)) {
                    $values[] = $value; // without a function call, which would slow down tiny tasks
                } else {
                    $checksEach = $this->addResult($i, $value) || $checksEach;
                }
            } catch (\Throwable $thrown) {
                $checksEach = true;
                $this->addFailure($thrown, $code);
            }
            $loop?->removeLeftovers();
            if ($checksEach || $cancellation !== null) {
                $items[$i] = null;
                $this->finishTask($value, $thrown, $startedAt, $i + 1 < $limit ? $maxDelay : null);
            }
        }
        $duration = (int) (hrtime(true) - $startedAt);
        $this->results->recordDuration($duration);
        if ($duration > SharedFlags::LIMIT_CHECK_NANOSECONDS) { // a shorter task cannot have loaded the event loop
            $this->findLoop();
        }
        $this->lifecycle->state = WorkerLifecycle::RUNNING_OWN_CODE;
    }

    /**
     * Called before the task `$index`: sends results if due, reads the limit again, checks the memory.
     *
     * @return array{int, int, int} limit: index of the first task that must not start; start of the task; next check
     */
    private function checkBefore(int $index, int $limit, int $now, int|float $startedAt, int $maxDelay): array
    {
        if ($index > 0) {
            $duration = (int) ($now - $startedAt);
            if ($duration > self::MIN_FORK_NANOSECONDS && $this->sharedMemory !== null && $this->lifecycle->isFork()) {
                // As a fork, it has changed the mark. Until the next mark, all tasks of the batch count as started.
                shmop_write($this->sharedMemory, self::ALL_STARTED, 0);
            }
            $this->recordDuration($duration);
            $this->hasAlarm ? pcntl_alarm(0) : null;
            if ($now - $this->results->flushedAt > $maxDelay) {
                $now = $this->flushBefore($index);
            }
            $this->findLoop(); // a task that loads the event loop takes so long that checkBefore() follows
        }
        $limit = $this->readLimit($limit);
        if ($index > 0 && $this->hasGrown()) {
            return [min($limit, $index), $now, 0];
        }
        if ($this->clock === null) {
            return [$limit, $now, $now + SharedFlags::LIMIT_CHECK_NANOSECONDS];
        }
        if ($index < $limit) {
            shmop_write($this->clock, pack('P', $now), 8);
        }

        return [$limit, $now, 0];
    }

    /** Runs a submitted task, or a map() task with an argument that is serialized or a long string. */
    private function runPacked(int $code, int $kind, string $bytes): mixed
    {
        return $code === 0
            ? $this->decoder->submittedTask($bytes, $kind)()
            : $this->decoder->mapTask($code)($this->decoder->argument($kind, $bytes));
    }

    /** @return bool whether {@see finishTask()} must run, because the result is a long string, array or object */
    private function addResult(int $index, mixed $value): bool
    {
        $isPlain = \is_string($value)
            ? \strlen($value) <= $this->maxPlainBytes
            : $value === null || \is_scalar($value);
        if ($isPlain) {
            /** @var bool|float|string|null $value */
            $this->results->areIntegers = false;
            $this->results->values[] = $value;

            return false;
        }
        $this->lifecycle->state = WorkerLifecycle::RUNNING_OWN_CODE;
        $value instanceof \Generator ? $this->items->send($index, $value) : $this->results->add($value);
        $this->lifecycle->setState(WorkerLifecycle::RUNNING_TASK);

        return true;
    }

    private function addFailure(\Throwable $thrown, int $code): void
    {
        $this->lifecycle->handleFailure($thrown);
        $isTaskMissing = $code !== 0
            && !$this->decoder->hasDecoded($code)
            && TaskCode::isMissing($thrown::class, $thrown->getMessage());
        $this->results->fail($thrown, $isTaskMissing ? WorkerProtocol::TASK_MISSING : WorkerProtocol::THROWN);
        $this->lifecycle->setState(WorkerLifecycle::RUNNING_TASK);
    }

    /**
     * Erases the start time, releases the result or exception, restores the initial state, and sends results if due.
     *
     * @param int|null $maxDelay see {@see runTasks()}; null after the last task, because the results are sent anyway
     * @param-out null $value
     * @param-out null $thrown
     */
    private function finishTask(mixed &$value, ?\Throwable &$thrown, int|float $startedAt, ?int $maxDelay): void
    {
        if (hrtime(true) - $startedAt > self::MIN_FORK_NANOSECONDS) {
            $this->lifecycle->killSelfInFork();
        }
        if ($this->clock !== null) {
            shmop_write($this->clock, "\0\0\0\0\0\0\0\0", 8);
        }
        if ($this->lifecycle->cancellation !== null) {
            $this->lifecycle->endIfCancelled();
        }
        try {
            $value = $thrown = null; // frees memory early
        } catch (\Throwable $late) { // @phpstan-ignore catch.neverThrown (a destructor may)
            error_log("A value that a task left behind threw in its destructor: {$late}");
        }
        $this->initialState?->restore();
        if ($maxDelay !== null && ($maxDelay === 0 || $this->results->isFull)) {
            $this->recordDuration((int) (hrtime(true) - $startedAt));
            $this->lifecycle->flush(0);
        }
    }

    /** Finds the event loop if a task has loaded the loop, and removes the callbacks that the task left there. */
    private function findLoop(): void
    {
        if ($this->loop === null) {
            $this->loop = LoopCallbacks::find(false);
            $this->loop?->removeLeftovers();
        }
    }

    /** @return array<int, string> encoded indexes of at least `$count` tasks for {@see SharedFlags} */
    private static function encodedIndexes(int $count): array
    {
        for ($i = \count(self::$indexes); $i < $count; ++$i) {
            self::$indexes[] = pack('V', $i);
        }

        return self::$indexes;
    }

    /** Records how long a task took. After a long task, repairs output, and kills this process if a task forked it. */
    private function recordDuration(int $nanoseconds): void
    {
        $this->results->recordDuration($nanoseconds);
        if ($nanoseconds > self::MIN_FORK_NANOSECONDS) {
            $this->lifecycle->killSelfInFork();
            $this->lifecycle->repairOutput();
        }
    }

    /** Sends results before the task `$index` starts. Returns the time afterwards, which is the task's start time. */
    private function flushBefore(int $index): int
    {
        if ($this->sharedMemory !== null) { // until this task starts, the mark names the previous task
            shmop_write($this->sharedMemory, self::$indexes[$index - 1], 0);
        }
        $this->lifecycle->flush(0);
        if ($this->sharedMemory !== null) {
            shmop_write($this->sharedMemory, self::$indexes[$index], 0);
        }

        return hrtime(true);
    }

    /** Returns the index of the first task of the batch that must not start; at most `$count`. */
    private function readLimit(int $count): int
    {
        if ($this->sharedMemory === null) {
            return $count;
        }
        $batch = $this->results->batch;
        /** @var array{1: int} $word */
        $word = unpack('P', shmop_read($this->sharedMemory, 16 + 8 * ($batch & 1), 8));

        return $word[1] >> 32 === $batch ? min($count, $word[1] & 0xFFFF_FFFF) : $count;
    }

    private function hasGrown(): bool
    {
        return $this->maxMemoryGrowthBytes !== null
            && memory_get_usage() - $this->initialMemory > $this->maxMemoryGrowthBytes;
    }

    private function report(mixed $value): void
    {
        $bytes = $this->results->serialize($value, 'The report');
        $this->lifecycle->send(WorkerProtocol::REPORT, $bytes);
    }
}
