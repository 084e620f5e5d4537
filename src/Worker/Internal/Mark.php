<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * What a pool and a worker tell each other without a word: shared memory, of which 40 bytes are used.
 *
 *     0   u32  index of the task that runs, or of the last one that did
 *     4   u32  its batch
 *     8   u64  when it was started, in nanoseconds of the monotonic clock, 0 when it has ended; where there is a time limit
 *     16  u64  batch << 32 | limit: of the last batch with an even number, tasks from this index on are not to be started
 *     24  u64  the same for odd numbers
 *     32  8 bytes that say whose it is
 *
 * Before a task, a worker writes the mark, reads the clock, and reads the limit if it has not for LOOK. The pool writes the
 * limit, waits for longer than LOOK, and reads the mark. A task whose mark it does not see then will find that the limit
 * was not read for too long, or was read after it had been written. So a task that was taken back never starts; and the
 * wait is also longer than a processor takes to let others see what it has written.
 *
 * Without ext-shmop there is none. A worker then sends each result before the next task starts, which tells as much about
 * one that has died, and nothing is taken back from it.
 */
final class Mark
{
    /** Nanoseconds after which a worker reads the limit again. */
    public const LOOK = 20_000;

    /**
     * A key is the name of the memory, and above it how many bytes more than needed it has. So memory of somebody else that
     * has the same name by chance is told by its size, which is there as soon as the name is.
     */
    private const NAME = 0x7FFF_FFFF;
    private const SPARE = 4000;

    private const OWNER = "Spindle\0";

    /** Microseconds that the pool waits. */
    private const SETTLING = 50;

    private function __construct(private readonly \Shmop $memory) {}

    /** A number that a worker may make its shared memory under; 0 without ext-shmop. */
    public static function newKey(): int
    {
        return \function_exists('shmop_open') ? random_int(1, self::NAME) | (random_int(1, self::SPARE) << 31) : 0;
    }

    /** In a worker, and not in the pool, which removes the name as soon as it has opened it: so no kill leaves it behind. */
    public static function make(int $key): ?\Shmop
    {
        if ($key === 0 || !\function_exists('shmop_open')) {
            return null;
        }
        $memory = @shmop_open($key & self::NAME, 'n', 0o600, self::size($key));
        if ($memory === false) {
            return null;
        }
        shmop_write($memory, self::OWNER, Protocol::MARK_SIZE);

        return $memory;
    }

    /**
     * Removes what workers have left that were killed, together with their pool, in the moment before it had opened it. No
     * other process has it open, and the one that made it is no more.
     */
    public static function sweep(): void
    {
        $segments = \function_exists('shmop_open') ? @file('/proc/sysvipc/shm') : false;
        foreach (\array_slice($segments === false ? [] : $segments, 1) as $segment) {
            // key, id, mode, size, pid of the creator, pid of the last user, attached
            $fields = array_map(\intval(...), (array) sscanf($segment, '%d %d %d %d %d %d %d'));
            [$key, $size, $creator, $attached] = [$fields[0] ?? 0, $fields[3] ?? 0, $fields[4] ?? 0, $fields[6] ?? 1];
            if ($attached !== 0 || $key === 0 || $creator < 1 || $size < self::size(1 << 31) || $size > self::size(self::SPARE << 31) || file_exists("/proc/{$creator}")) {
                continue;
            }
            $memory = @shmop_open($key, 'w', 0, 0);
            if ($memory !== false && shmop_read($memory, Protocol::MARK_SIZE, \strlen(self::OWNER)) === self::OWNER) {
                shmop_delete($memory);
            }
        }
    }

    /** Of what a worker may have made: the pool may not have come to it. */
    public static function remove(int $key): void
    {
        if (\function_exists('shmop_open')) {
            self::take($key);
        }
    }

    /** Takes what a worker has made, and its name away; of what somebody else has under that name, nothing. */
    public static function take(int $key): ?self
    {
        if ($key === 0) {
            return null;
        }
        $memory = @shmop_open($key & self::NAME, 'w', 0, 0);
        if ($memory === false || shmop_size($memory) !== self::size($key)) {
            return null;
        }
        shmop_delete($memory);

        return new self($memory);
    }

    /** @return array{int, int} batch and index of the task that was started last; 0 and 0 before the first */
    public function read(): array
    {
        /** @var array{index: int, batch: int} $words */
        $words = unpack('Vindex/Vbatch', shmop_read($this->memory, 0, 8));

        return [$words['batch'], $words['index']];
    }

    /** When that task was started, in nanoseconds of {@see hrtime()}; 0 once it has ended, or before it starts. */
    public function startedAt(): int
    {
        /** @var array{1: int} $words */
        $words = unpack('P', shmop_read($this->memory, 8, 8));

        return $words[1];
    }

    /**
     * Takes back what has not been started of a batch.
     *
     * @param int $limit tasks in the batch, without those that were taken back before: they are not given again
     *
     * @return int how many were started; none of the others will be
     */
    public function revoke(int $batch, int $limit): int
    {
        $started = min($limit, $this->started($batch, $limit));
        shmop_write($this->memory, pack('P', ($batch << 32) | $started), 16 + 8 * ($batch & 1));
        usleep(self::SETTLING);

        // A worker that sends results before a task takes that one's mark back meanwhile; it starts all the same where the limit allows it.
        return max($started, min($limit, $this->started($batch, $limit)));
    }

    /** @return int how many of a batch's tasks were started, the one that runs included */
    public function started(int $batch, int $count): int
    {
        [$current, $index] = $this->read();

        return match (true) {
            $current < $batch => 0,
            $current > $batch => $count,
            default => $index + 1,
        };
    }

    private static function size(int $key): int
    {
        return Protocol::MARK_SIZE + \strlen(self::OWNER) + ($key >> 31);
    }
}
