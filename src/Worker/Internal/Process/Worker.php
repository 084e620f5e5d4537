<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Spindle\Worker\Internal\Mark;
use Spindle\Worker\Internal\Packing;
use Spindle\Worker\Internal\Portable;
use Spindle\Worker\Internal\Protocol;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\TaskContext;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;

/**
 * A worker: takes batches of tasks, runs one task after the other, sends what comes of them.
 */
final class Worker
{
    /**
     * Results of tiny tasks wait this long for company, in nanoseconds, and until they have this size, in bytes: so little is
     * late when a long task follows, or lost when it ends the process.
     */
    private const GATHER = 50_000;
    private const GATHERED = 1 << 18;

    /** Nothing forks in less time than this, in nanoseconds. */
    private const FORK_TIME = 50_000;

    /** Of what can be called again and again, this many are kept. */
    private const KEPT_CODES = 256;

    private const IDLE = 0;
    private const BUSY = 1;
    private const TASK = 2;

    private const KILL = 9;
    private const TERM = 15;

    private const FATAL = \E_ERROR | \E_PARSE | \E_CORE_ERROR | \E_COMPILE_ERROR;

    /** @var array<int, string> numbers as {@see Mark} has them */
    private static array $words = [];

    private readonly int $pid;
    private ?\Shmop $mark = null;

    /** @var list<array{int, int, string}> frames that came while a stream waited for one of its own */
    private array $frames = [];

    /** @var array<int, string> by the number that the pool gave it */
    private array $codes = [];

    /** @var array<int|string, \Closure> by that number, or by the code itself where it has no state */
    private array $callables = [];

    /** Batch and index of the task that runs, as {@see Protocol} has it; the first of the results that wait. */
    private int $batch = 0;
    private int $from = 0;

    /** @var list<bool|int|float|string|null> results that wait, while all of them are plain */
    private array $values = [];

    /** Whether all of those are. */
    private bool $integers = true;

    private Packing $packed;
    private bool $failures = false;
    private bool $full = false;

    private int $longest = 0;
    private int $flushed = 0;

    private ?DeferredCancellation $cancellation = null;

    /** Whose code runs: a signal is not answered in the middle of a frame. */
    private int $state = self::IDLE;
    private bool $terminating = false;

    /** It was told to end, and its task has asked to end by itself. */
    private bool $leaving = false;

    /** It has ended as it should. */
    private bool $over = false;

    /** @var string|null given back to PHP when it has no memory left and there is something to tell */
    private ?string $reserve; // @phpstan-ignore property.onlyWritten

    /**
     * @param int         $markKey for the shared memory, see {@see Mark}; 0 for none
     * @param bool        $timed whether the pool wants to know when a task was started
     * @param bool        $isThread where signals are the process's, and a shutdown function runs when it is too late
     */
    public function __construct(
        private readonly Wire $wire,
        #[\SensitiveParameter]
        private readonly string $key,
        private readonly int $markKey,
        private readonly bool $timed,
        private readonly bool $isThread,
    ) {
        $this->pid = (int) getmypid();
        $this->packed = new Packing();
        $this->reserve = str_repeat('x', 1 << 16);
    }

    /** From here on what is printed goes to the pool, and the pool is told how this process ends. */
    public function attach(): void
    {
        $this->captureOutput();
        if (!$this->isThread) {
            register_shutdown_function($this->lastWords(...));
            if (\function_exists('pcntl_signal')) {
                pcntl_async_signals(true);
                pcntl_signal(self::TERM, $this->terminate(...), false); // or it would be answered only when something comes
            }
        }
        $this->mark = Mark::make($this->markKey); // however this ends from here on, its name is taken away
    }

    public function hasMark(): bool
    {
        return $this->mark !== null;
    }

    /** @param string|null $code of what is to be called first */
    public function initialize(?string $code): void
    {
        if ($code !== null) {
            TaskCode::decode($code, $this->key)();
        }
    }

    public function failed(\Throwable $failure): void
    {
        $this->over = true;
        $this->wire->send(Protocol::NOT_READY, 0, serialize(Thrown::of($failure)));
    }

    /** Works until the pool has no more for it, or is gone. */
    public function work(): void
    {
        $this->wire->send(Protocol::READY, 0, pack('P', memory_get_usage()));
        while (($frame = array_shift($this->frames) ?? $this->receive()) !== null) {
            [$type, $id, $payload] = $frame;
            if ($type === Protocol::TASKS) {
                $this->perform($id, $payload);
            } elseif ($type === Protocol::CODE) {
                $this->codes[$id] = $payload;
            } elseif ($type === Protocol::FORGET) {
                unset($this->codes[$id], $this->callables[$id]);
            } elseif ($type === Protocol::STOP) {
                break;
            }
            unset($frame, $payload); // large ones are not kept until the next comes
        }
        $this->over = true;
    }

    private function perform(int $batch, string $payload): void
    {
        /** @var array{code: int, attempt: int, flags: int} $head */
        $head = unpack('Vcode/Vattempt/Cflags', $payload);
        if (($head['flags'] & Protocol::PACKED) !== 0) {
            [$kinds, $items] = Packing::split($payload, 9);
        } else {
            $kinds = '';
            $items = Packing::values($payload, 9);
        }
        unset($payload);
        TaskContext::enter(new TaskContext($head['attempt'], $this->cancellation(...), $this->report(...)));
        $this->batch = $batch;
        $this->from = 0;
        $this->longest = 0;
        $this->flushed = hrtime(true);
        if ($this->mark !== null) {
            shmop_write($this->mark, pack('VV', 0, $batch), 0);
        }
        $this->performEach($head['code'], $kinds, $items, $this->mark === null || ($head['flags'] & Protocol::EAGER) !== 0 ? 0 : self::GATHER);
        $this->afterLongTask();
        $this->flush(Protocol::DONE);
        TaskContext::enter(null);
    }

    /**
     * The loop that every task goes through: tiny tasks take less than what is done here for each. What need not be done
     * for each is done when {@see Mark::LOOK} is over, and so after every task that took longer.
     *
     * @param string                           $kinds of packed items, a byte for each; '' of plain ones
     * @param list<bool|int|float|string|null> $items
     * @param int                              $gather how long results may wait, in nanoseconds
     */
    private function performEach(int $code, string $kinds, array $items, int $gather): void
    {
        $mark = $this->mark;
        $words = self::words(\count($items));
        $limit = \count($items);
        $task = null;
        $values = &$this->values; // what has run is told even if a task ends the process
        $plain = $code !== 0 && $kinds === '';
        $timed = $this->timed && $mark !== null;
        $careful = !$plain || $timed || $gather === 0; // whether there is something to do after a task
        $before = $this->flushed;
        $due = 0;
        $this->enter(self::TASK);
        for ($i = 0; $i < $limit; ++$i) {
            if ($mark !== null) {
                shmop_write($mark, $words[$i], 0); // first the mark, then the clock, then the limit, see Mark
            }
            $now = hrtime(true);
            if ($now > $due) {
                $this->took($now - $before);
                if ($now - $this->flushed > $gather && $i > 0) {
                    $now = $this->flushBefore($i);
                }
                $limit = $this->limit($limit);
                if ($i >= $limit) {
                    break;
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
                    $this->integers = false;
                    $values[] = $value;
                } else {
                    $careful = true;
                    $this->state = self::BUSY;
                    $value instanceof \Generator ? $this->stream($i, $value) : $this->pack($value);
                    $this->enter(self::TASK);
                }
            } catch (\Throwable $thrown) {
                $careful = true;
                $this->state = self::BUSY;
                $this->packThrown($thrown);
                $thrown = null;
                $this->enter(self::TASK);
            }
            if ($careful || $this->cancellation !== null) {
                if ($timed) {
                    shmop_write($mark, "\0\0\0\0\0\0\0\0", 8);
                }
                $this->leaveIfTold();
                $items[$i] = $value = null; // they may be large
                if (($this->full || $gather === 0) && $i + 1 < $limit) {
                    $this->took(hrtime(true) - $before);
                    $this->flush(0);
                }
            }
        }
        $this->state = self::BUSY;
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
        $this->longest = max($this->longest, $nanoseconds);
        if ($nanoseconds > self::FORK_TIME) {
            $this->afterLongTask();
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
        $this->flush(0);
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
        $words = unpack('Vlimit/Vbatch', shmop_read($this->mark, 16 + 8 * ($this->batch & 1), 8));

        return $words['batch'] === $this->batch ? min($count, $words['limit']) : $count;
    }

    /** A task that had asked for its cancellation has ended. */
    private function leaveIfTold(): void
    {
        $this->cancellation = null;
        if ($this->leaving) {
            $this->flush(0);
            $this->vanish();
        }
    }

    /** A fork that a task has made and that has come back from it is no worker; and buffers that were left open, or closed. */
    private function afterLongTask(): void
    {
        if (getmypid() !== $this->pid) {
            $this->vanish();
        }
        if (ob_get_level() !== 1) {
            while (ob_get_level() > 1 && ob_end_flush());
            if (ob_get_level() === 0) {
                $this->captureOutput();
            }
        }
    }

    /** @return array{int, int, string}|null */
    private function receive(): ?array
    {
        $this->enter(self::IDLE);
        $frame = $this->wire->receive();
        $this->state = self::BUSY;

        return $frame;
    }

    /** Leaves this class's own code; a signal that came in it is answered now. */
    private function enter(int $state): void
    {
        $this->state = $state;
        if ($this->terminating) {
            $this->terminate();
        }
    }

    /** What all tasks of a batch call. */
    private function decoded(int $code): \Closure
    {
        return $this->callables[$code] ??= TaskCode::decode($this->codes[$code], $this->key);
    }

    private function callable(string $code, int $kind): \Closure
    {
        if ($kind !== Protocol::STRING) {
            return TaskCode::decode($code, $this->key);
        }
        if (isset($this->callables[$code])) {
            return $this->callables[$code];
        }
        if (\count($this->callables) >= self::KEPT_CODES) {
            $this->callables = [];
        }

        return $this->callables[$code] = TaskCode::decode($code, $this->key);
    }

    private static function unpack(int $kind, string $bytes): mixed
    {
        return $kind === Protocol::STRING ? $bytes : unserialize($bytes);
    }

    private function pack(mixed $value): void
    {
        if (\is_string($value)) {
            $this->add(Protocol::STRING, $value);

            return;
        }
        try {
            $this->add(Protocol::SERIALIZED, Portable::serialize($value, 'The result'));
        } catch (UnserializableException $refused) {
            $this->refuse($refused);
        }
    }

    private function refuse(UnserializableException $refused): void
    {
        $this->failures = true;
        $this->add(Protocol::UNSERIALIZABLE, serialize([$refused->path, $refused->what]));
    }

    private function packThrown(\Throwable $thrown): void
    {
        $this->failures = true;
        $this->add(Protocol::THROWN, Failure::pack($thrown));
    }

    private function add(int $kind, string $bytes): void
    {
        $this->packValues(); // they came before it
        $this->packed->add($kind, $bytes);
        $this->full = $this->packed->size() > self::GATHERED;
    }

    private function packValues(): void
    {
        $this->packed->addPlain($this->values);
        $this->values = [];
    }

    /** Sends the results that wait. Whatever ends this process, it does between two frames. */
    private function flush(int $flags): void
    {
        $state = $this->state;
        $this->state = self::BUSY;
        if ($this->packed->count() > 0) {
            $this->packValues();
        }
        $packed = $this->packed;
        $isPacked = $packed->count() > 0;
        $count = $isPacked ? $packed->count() : \count($this->values);
        if ($count === 0 && $flags === 0) {
            $this->enter($state);

            return;
        }
        $now = hrtime(true);
        $head = pack(
            'VVCPPPP',
            $this->from,
            $count,
            $flags | ($isPacked ? Protocol::PACKED : 0) | ($this->failures ? Protocol::FAILURES : 0),
            $now - $this->flushed,
            $this->longest,
            memory_get_usage(),
            memory_get_peak_usage(),
        );
        if ($isPacked) {
            $this->packed = new Packing();
            $head .= $packed->head();
        }
        $body = $isPacked ? $packed->bytes() : Packing::list($this->values, $this->integers);
        $this->values = [];
        $this->failures = $this->full = false;
        $this->integers = true;
        $this->from += $count;
        $this->flushed = $now;
        $this->wire->send(Protocol::RESULTS, $this->batch, $head, $body) || $this->vanish();
        $this->enter($state);
    }

    /**
     * Sends a generator's items, as many ahead as the pool has room for.
     *
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     */
    private function stream(int $index, \Generator $items): void
    {
        $this->flush(0);
        $this->wire->send(Protocol::ITEMS, $this->batch, pack('V', $index)) || $this->vanish();
        $ahead = $size = 0;
        for ($this->enter(self::TASK); $items->valid(); $this->enter(self::TASK), $items->next()) {
            $item = [$items->key(), $items->current()];
            $this->state = self::BUSY;
            try {
                $bytes = Portable::serialize($item, 'The item');
            } catch (UnserializableException $refused) {
                $this->refuse($refused);

                return;
            }
            if (getmypid() !== $this->pid) {
                $this->vanish();
            }
            $this->wire->send(Protocol::ITEMS, $this->batch, pack('V', $index), $bytes) || $this->vanish();
            ++$ahead;
            $size += \strlen($bytes);
            while ($ahead >= Protocol::WINDOW || $size >= Protocol::WINDOW_SIZE || $this->wire->isReadable()) {
                $frame = $this->receive() ?? $this->vanish();
                if ($frame[1] !== $this->batch || ($frame[0] !== Protocol::WANTED && $frame[0] !== Protocol::UNWANTED)) {
                    $this->frames[] = $frame;
                    continue;
                }
                /** @var array{index: int} $of */
                $of = unpack('Vindex', $frame[2]);
                if ($of['index'] !== $index) {
                    continue; // it came too late for a generator before this one
                }
                if ($frame[0] === Protocol::UNWANTED) {
                    $this->pack(null);
                    $this->full = true; // nobody is to wait for its end

                    return;
                }
                /** @var array{items: int, size: int} $taken */
                $taken = unpack('Vitems/Vsize', $frame[2], 4);
                $ahead -= $taken['items'];
                $size -= $taken['size'];
            }
        }
        $this->state = self::BUSY;
        $this->pack($items->getReturn());
        $this->full = true;
    }

    private function report(mixed $value): void
    {
        $bytes = Portable::serialize($value, 'The report');
        $this->tell(Protocol::REPORT, $bytes);
    }

    private function cancellation(): Cancellation
    {
        return ($this->cancellation ??= new DeferredCancellation())->getCancellation();
    }

    private function captureOutput(): void
    {
        ob_start(function (string $output): string {
            if (getmypid() !== $this->pid) {
                return $output; // a fork that a task has made has the same standard output, which the pool gets as well
            }
            if ($output !== '') {
                $this->tell(Protocol::OUTPUT, $output);
            }

            return '';
        }, 1);
    }

    /** Sends something of a task's while it runs. */
    private function tell(int $type, string $bytes): void
    {
        if (getmypid() === $this->pid) {
            $state = $this->state;
            $this->state = self::BUSY;
            $this->wire->send($type, $this->batch, '', $bytes);
            $this->enter($state);
        }
    }

    /** The pool wants this process to end. A task that has asked for its cancellation may go on until it is killed. */
    private function terminate(): void
    {
        if (getmypid() !== $this->pid) {
            $this->vanish();
        }
        $this->terminating = $this->state === self::BUSY;
        if ($this->terminating) {
            return;
        }
        if ($this->cancellation !== null) {
            $this->leaving = true;
            $this->cancellation->cancel();

            return;
        }
        $this->flush(0);
        $this->vanish();
    }

    /** Ends without anything more of the task being run, be it a destructor or a shutdown function. */
    private function vanish(): never
    {
        Mark::remove($this->markKey);
        if (\function_exists('posix_kill') && !($this->isThread && getmypid() === $this->pid)) {
            posix_kill((int) getmypid(), self::KILL);
        }
        $this->over = true;
        exit(255);
    }

    /** How this process, or thread, has ended; nothing if it was as it should. */
    public function lastWords(): void
    {
        if ($this->over) {
            Mark::remove($this->markKey);

            return;
        }
        if (getmypid() !== $this->pid) {
            $this->over = true; // a fork that a task has made, and that has called exit()

            return;
        }
        $this->state = self::BUSY;
        $this->reserve = null;
        $peak = memory_get_peak_usage(true);
        $this->flush(0);
        $error = error_get_last();
        $fatal = $error !== null && ($error['type'] & self::FATAL) !== 0;
        $this->wire->send(
            Protocol::LAST_WORDS,
            $this->batch,
            pack('PC', $peak, $fatal ? 1 : 0),
            $fatal ? "{$error['message']} in {$error['file']}:{$error['line']}" : '',
        );
        Mark::remove($this->markKey);
    }
}
