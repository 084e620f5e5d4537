<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Warnings;

/**
 * Memory that a pool and a worker share. The worker writes which task it runs. The pool writes which tasks must not
 * start. 40 bytes are used:
 *
 *      0   u32  index of the task that the worker is running, has run, or was about to start
 *      4   u32  batch of this task
 *      8   u64  start of this task in nanoseconds of hrtime(); 0 after its end; always 0 without a time limit
 *      16  u64  for even batch numbers: batch << 32 | limit. The limit is the first task that must not start
 *      24  u64  the same for odd batch numbers
 *      32  8 bytes that identify Spindle's memory (OWNER)
 *
 * Before each task, a worker writes the mark (offsets 0 to 7) and reads the clock. If it last read the limit (offset 16
 * or 24) more than LIMIT_CHECK_NANOSECONDS ago, it reads the limit again. To take tasks back, the pool writes the
 * limit, waits for more than LIMIT_CHECK_NANOSECONDS, and reads the mark. Suppose that the worker marks another task
 * after this read, and does not know the new limit. Then the worker last read the limit before the wait, so more than
 * LIMIT_CHECK_NANOSECONDS ago. So the worker rereads the limit, and starts the task only if the task is before it. A
 * processor makes its writes visible to other processors in less time than this wait.
 *
 * Without ext-shmop there is no mark. In this case, a worker sends each result before it starts the next task. So the
 * pool knows which task ran when the worker died. Tasks are never taken back from such a worker.
 */
final class SharedFlags
{
    public const LIMIT_CHECK_NANOSECONDS = 20_000;

    /**
     * The lower 31 bits of a key name the memory: they are the key for shmop_open(). The other bits are a random number
     * of extra bytes, so that the size is unusual. Memory of this name but of another size belongs to another program.
     * The pool can check the size even before the worker has written the OWNER.
     */
    private const NAME_MASK = 0x7FFF_FFFF;
    private const MAX_EXTRA_BYTES = 4000;

    private const OWNER = "Spindle\0";
    private const OWNER_OFFSET = 32;

    private const TAKE_BACK_WAIT_MICROSECONDS = 50;

    /** Process that opened the memory. A fork shares the memory, and must not take tasks back. */
    private readonly int $ownerPid;

    private function __construct(private readonly \Shmop $memory)
    {
        $this->ownerPid = (int) getmypid();
    }

    /** Returns a key for the shared memory of a worker; 0 without ext-shmop. */
    public static function newKey(): int
    {
        return \function_exists('shmop_open')
            ? random_int(1, self::NAME_MASK) | (random_int(1, self::MAX_EXTRA_BYTES) << 31)
            : 0;
    }

    /** Creates memory in a worker. open() removes the name, so that the system frees the memory after its last use. */
    public static function create(int $key): ?\Shmop
    {
        if ($key === 0 || !\function_exists('shmop_open')) {
            return null;
        }
        $memory = self::attach($key & self::NAME_MASK, 'n', 0o600, self::size($key));
        if ($memory === false) {
            return null;
        }
        shmop_write($memory, self::OWNER, self::OWNER_OFFSET);

        return $memory;
    }

    /** Removes memory of workers that were killed together with their pool before the pool had opened the memory. */
    public static function removeStale(): void
    {
        $segments = \function_exists('shmop_open')
            ? Warnings::suppressed(static fn(): array|false => file('/proc/sysvipc/shm'))
            : false;
        foreach (\array_slice($segments === false ? [] : $segments, 1) as $segment) {
            // columns: name, id, mode, size, pid of the creator, pid of the last user, number of attached processes
            $fields = array_map(\intval(...), (array) sscanf($segment, '%d %d %d %d %d %d %d'));
            [$name, $size, $creator, $attached] = [$fields[0] ?? 0, $fields[3] ?? 0, $fields[4] ?? 0, $fields[6] ?? 1];
            if (
                $attached !== 0
                || $name === 0
                || $creator < 1
                || $size < self::size(1 << 31)
                || $size > self::size(self::MAX_EXTRA_BYTES << 31)
                || file_exists("/proc/{$creator}")
            ) {
                continue;
            }
            $memory = self::attach($name, 'w');
            if ($memory !== false && shmop_read($memory, self::OWNER_OFFSET, \strlen(self::OWNER)) === self::OWNER) {
                shmop_delete($memory);
            }
        }
    }

    /** Removes the memory of a worker, if the worker has created it and the pool has not opened it. */
    public static function remove(int $key): void
    {
        if (\function_exists('shmop_open')) {
            self::open($key);
        }
    }

    /** Opens the memory of a worker, and removes its name. Ignores memory of another size: another program owns it. */
    public static function open(int $key): ?self
    {
        if ($key === 0) {
            return null;
        }
        $memory = self::attach($key & self::NAME_MASK, 'w');
        if ($memory === false || shmop_size($memory) !== self::size($key)) {
            return null;
        }
        shmop_delete($memory);

        return new self($memory);
    }

    /** @return array{int, int} batch and index of the marked task; 0 and 0 before the first task */
    public function readMark(): array
    {
        /** @var array{index: int, batch: int} $fields */
        $fields = unpack('Vindex/Vbatch', shmop_read($this->memory, 0, 8));

        return [$fields['batch'], $fields['index']];
    }

    /** Returns when the marked task started, in nanoseconds of hrtime(); 0 if its time limit is not running. */
    public function startedAt(): int
    {
        /** @var array{1: int} $fields */
        $fields = unpack('P', shmop_read($this->memory, 8, 8));

        return $fields[1];
    }

    /**
     * @param int $limit number of tasks in the batch, without those that were taken back before
     *
     * @return int number of tasks that have started or may still start; later tasks of the batch never start
     */
    public function takeBack(int $batch, int $limit): int
    {
        if ($this->ownerPid !== getmypid()) {
            return $limit;
        }
        $started = min($limit, $this->startedCount($batch, $limit));
        shmop_write($this->memory, pack('P', ($batch << 32) | $started), 16 + 8 * ($batch & 1));
        usleep(self::TAKE_BACK_WAIT_MICROSECONDS);

        // While a worker sends results before a task, the mark names the previous task again. So the second count may
        // be lower than the first count. The task may still start, because the first count was written as the limit.
        return max($started, min($limit, $this->startedCount($batch, $limit)));
    }

    /** @return int number of started tasks: those up to the mark; all `$count` if the mark is in a later batch */
    public function startedCount(int $batch, int $count): int
    {
        [$current, $index] = $this->readMark();

        return match (true) {
            $current < $batch => 0,
            $current > $batch => $count,
            default => $index + 1,
        };
    }

    private static function attach(int $name, string $mode, int $permissions = 0, int $size = 0): \Shmop|false
    {
        return Warnings::suppressed(static fn(): \Shmop|false => shmop_open($name, $mode, $permissions, $size));
    }

    private static function size(int $key): int
    {
        return self::OWNER_OFFSET + \strlen(self::OWNER) + ($key >> 31);
    }
}
