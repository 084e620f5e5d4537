<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\Mark;
use Spindle\Worker\Internal\Packing;
use Spindle\Worker\Internal\Portable;
use Spindle\Worker\Internal\Protocol;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\TaskContext;
use Spindle\Worker\Thrown;

/**
 * A worker: takes batches of tasks, runs one task after the other, sends what comes of them.
 */
final class Worker
{
    /** Results of tiny tasks wait this long for company, in nanoseconds: so little is late when a long task follows, or lost when it ends the process. */
    private const GATHER = 100_000;

    /** Bytes of the payload of TASKS before the tasks. */
    private const HEAD = 9;

    /** Nothing forks in less time than this, in nanoseconds. */
    private const FORK_TIME = 50_000;

    /** Of what can be called again and again, this many are kept. */
    private const KEPT_CODES = 256;

    /** @var array<int, string> numbers as {@see Mark} has them */
    private static array $words = [];

    /** Signs closures. Of the only worker here; and not a part of any object, which a task might print. */
    private static string $key = '';

    private readonly ResultBuffer $results;
    private readonly Life $life;
    private readonly Items $items;
    private ?\Shmop $mark = null;
    private int $memoryAtFirst = 0;
    private ?State $state = null;

    /** @var array<int, string> by the number that the pool gave it */
    private array $codes = [];

    /** @var array<int|string, \Closure> by that number, or by the code itself where it has no state */
    private array $callables = [];

    /**
     * @param string $key      that closures are signed with
     * @param int    $markKey  for the shared memory, see {@see Mark}; 0 for none
     * @param bool   $timed    whether the pool wants to know when a task was started
     * @param int    $maxResult bytes of a result
     * @param int|null $maxGrowth bytes of memory that tasks may leave behind before the batch is cut short
     * @param bool   $restoresState whether to undo after each task what {@see State} knows
     * @param bool   $isThread where signals are the process's, and a shutdown function runs when it is too late
     */
    public function __construct(
        private readonly Wire $wire,
        #[\SensitiveParameter]
        string $key,
        int $markKey,
        private readonly bool $timed,
        int $maxResult,
        private readonly ?int $maxGrowth,
        private readonly bool $restoresState,
        private readonly bool $isThread,
    ) {
        self::$key = $key;
        $this->results = new ResultBuffer($wire, $maxResult);
        $this->life = new Life($wire, $this->results, $markKey, $isThread);
        $this->items = new Items($wire, $this->life, $this->results);
    }

    /** From here on what is printed goes to the pool, and the pool is told how this process ends. */
    public function attach(): void
    {
        $this->mark = $this->life->begin();
        $this->items->clock = $this->timed ? $this->mark : null;
    }

    public function hasMark(): bool
    {
        return $this->mark !== null;
    }

    /** @param string|null $code of what is to be called first */
    public function initialize(?string $code): void
    {
        if ($code !== null) {
            TaskCode::decode($code, self::$key)();
        }
    }

    public function failed(\Throwable $failure): void
    {
        $this->life->conclude();
        $this->wire->send(Protocol::NOT_READY, 0, serialize(Thrown::of($failure)));
    }

    /** Works until the pool has no more for it, or is gone. */
    public function work(): void
    {
        $this->state = $this->restoresState ? new State($this->isThread) : null;
        $this->memoryAtFirst = memory_get_usage();
        $this->wire->send(Protocol::READY, 0, pack('P', $this->memoryAtFirst));
        while (($frame = $this->items->shift() ?? $this->life->receive()) !== null) {
            [$type, $id, $payload] = $frame;
            $frame = null; // large ones are not kept
            if ($type === Protocol::TASKS) {
                $this->perform($id, $payload);
            } elseif ($type === Protocol::CODE) {
                $this->codes[$id] = $payload;
            } elseif ($type === Protocol::FORGET) {
                unset($this->codes[$id], $this->callables[$id]);
            } elseif ($type === Protocol::STOP) {
                break;
            }
            $payload = '';
        }
        $this->life->conclude();
    }

    /** How this process, or thread, has ended; nothing if it was as it should. */
    public function lastWords(): void
    {
        $this->life->lastWords();
    }

    private function perform(int $batch, string &$payload): void
    {
        /** @var array{code: int, attempt: int, flags: int} $head */
        $head = unpack('Vcode/Vattempt/Cflags', $payload);
        TaskContext::enter(new TaskContext($head['attempt'], $this->life->cancellation(...), $this->report(...)));
        $this->results->begin($batch);
        if ($this->mark !== null) {
            shmop_write($this->mark, pack('VV', 0, $batch), 0);
        }
        $this->performEach($head['code'], ($head['flags'] & Protocol::PACKED) !== 0, $payload, $this->mark === null || ($head['flags'] & Protocol::EAGER) !== 0 ? 0 : self::GATHER);
        $this->life->tidy();
        $this->life->flush(Protocol::DONE);
        TaskContext::enter(null);
    }

    /**
     * The loop that every task goes through: tiny tasks take less than what is done here for each. What need not be done
     * for each is done when {@see Mark::LOOK} is over, and so after every task that took longer.
     *
     * @param string $payload is let go as soon as it was read, for it may be large
     * @param int    $gather  how long results may wait, in nanoseconds
     */
    private function performEach(int $code, bool $isPacked, string &$payload, int $gather): void
    {
        [$kinds, $items] = $isPacked ? Packing::split($payload, self::HEAD) : ['', Packing::values($payload, self::HEAD)];
        $payload = '';
        $mark = $this->mark;
        $words = self::words(\count($items));
        $limit = \count($items);
        $task = null;
        $results = $this->results;
        $values = &$results->values; // what has run is told even if a task ends the process
        $plain = $code !== 0 && $kinds === '';
        $timed = $this->timed && $mark !== null;
        $careful = !$plain || $timed || $gather === 0 || $this->state !== null; // whether there is something to do after a task
        $life = $this->life;
        $cancellation = &$life->cancellation;
        $before = $results->flushed;
        $due = 0;
        $life->enter(Life::TASK);
        for ($i = 0; $i < $limit; ++$i) {
            if ($mark !== null) {
                shmop_write($mark, $words[$i], 0); // first the mark, then the clock, then the limit, see Mark
            }
            $now = hrtime(true);
            if ($now > $due) {
                $this->took($now - $before);
                if ($now - $results->flushed > $gather && $i > 0) {
                    $now = $this->flushBefore($i);
                }
                $limit = $this->limit($limit);
                if ($i >= $limit || ($i > 0 && $this->hasGrown())) {
                    break; // the pool gives the rest to another worker
                }
                $due = $timed ? 0 : $now + Mark::LOOK;
                if ($timed) {
                    shmop_write($mark, pack('P', $now), 8);
                }
            }
            $before = $now;
            try {
                if ($plain) {
                    $value = ($task ??= $this->decoded($code))($items[$i]);
                } elseif ($code === 0) {
                    $value = $this->callable((string) $items[$i], \ord($kinds[$i]))();
                } else {
                    $value = ($task ??= $this->decoded($code))(self::unpack(\ord($kinds[$i]), (string) $items[$i]));
                }
                if (\is_int($value)) {
                    $values[] = $value; // of the tiniest results there are the most
                } elseif ($value === null || \is_bool($value) || \is_float($value) || (\is_string($value) && \strlen($value) < Protocol::LONG)) {
                    $results->integers = false;
                    $values[] = $value;
                } else {
                    $careful = true;
                    $life->state = Life::BUSY;
                    $value instanceof \Generator ? $this->items->send($i, $value) : $results->add($value);
                    $life->enter(Life::TASK);
                }
            } catch (\Throwable $thrown) {
                $careful = true;
                $life->state = Life::BUSY;
                $results->fail($thrown);
                $life->enter(Life::TASK);
            }
            if ($careful || $cancellation !== null) {
                if ($timed) {
                    shmop_write($mark, "\0\0\0\0\0\0\0\0", 8);
                }
                $life->leaveIfTold();
                try {
                    $items[$i] = $value = $thrown = null; // they may be large
                } catch (\Throwable $late) { // @phpstan-ignore catch.neverThrown (a destructor may)
                    error_log("What a task has left behind threw when it was let go: {$late}");
                    $late = null;
                }
                $this->state?->restore();
                if (($results->full || $gather === 0) && $i + 1 < $limit) {
                    $this->took(hrtime(true) - $before);
                    $life->flush(0);
                }
            }
        }
        $life->state = Life::BUSY;
        $this->took(hrtime(true) - $before);
    }

    /**
     * Numbers as {@see Mark} has them.
     *
     * @return array<int, string> at least so many
     */
    private static function words(int $count): array
    {
        for ($i = \count(self::$words); $i < $count; ++$i) {
            self::$words[] = pack('V', $i);
        }

        return self::$words;
    }

    /** A task took so many nanoseconds; or it, and tiny ones before it. */
    private function took(int $nanoseconds): void
    {
        $this->results->took($nanoseconds);
        if ($nanoseconds > self::FORK_TIME) {
            $this->life->tidy();
        }
    }

    /**
     * Sends the results that wait, while the next task, though marked, has not started.
     *
     * @return int when it starts
     */
    private function flushBefore(int $index): int
    {
        if ($this->mark !== null) {
            shmop_write($this->mark, self::$words[$index - 1], 0);
        }
        $this->life->flush(0);
        if ($this->mark !== null) {
            shmop_write($this->mark, self::$words[$index], 0);
        }

        return hrtime(true);
    }

    /** From which task on the batch was taken back. */
    private function limit(int $count): int
    {
        if ($this->mark === null) {
            return $count;
        }
        /** @var array{limit: int, batch: int} $words */
        $words = unpack('Vlimit/Vbatch', shmop_read($this->mark, 16 + 8 * ($this->results->batch & 1), 8));

        return $words['batch'] === $this->results->batch ? min($count, $words['limit']) : $count;
    }

    private function hasGrown(): bool
    {
        return $this->maxGrowth !== null && memory_get_usage() - $this->memoryAtFirst > $this->maxGrowth;
    }

    /** What all tasks of a batch call. */
    private function decoded(int $code): \Closure
    {
        return $this->callables[$code] ??= TaskCode::decode($this->codes[$code], self::$key);
    }

    private function callable(string $code, int $kind): \Closure
    {
        if ($kind !== Protocol::STRING) {
            return TaskCode::decode($code, self::$key);
        }
        if (isset($this->callables[$code])) {
            return $this->callables[$code];
        }
        if (\count($this->callables) >= self::KEPT_CODES) {
            $this->callables = [];
        }

        return $this->callables[$code] = TaskCode::decode($code, self::$key);
    }

    private static function unpack(int $kind, string $bytes): mixed
    {
        return $kind === Protocol::STRING ? $bytes : Portable::unserialize($bytes, TaskCode::MISSING);
    }

    private function report(mixed $value): void
    {
        $bytes = $this->results->serialize($value, 'The report');
        $this->life->tell(Protocol::REPORT, $bytes);
    }
}
