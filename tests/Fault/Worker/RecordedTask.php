<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** A task that records its start in a file to which all workers append. The record survives the death of the worker. */
final class RecordedTask
{
    private const PID_BITS = 24;

    /** @var resource|null */
    private static mixed $starts = null;
    private static int $worker = 0;

    /** @param int $microseconds duration of the task */
    public function __construct(
        public readonly int $number,
        private readonly string $file,
        private readonly int $microseconds,
    ) {}

    /** @return array{int, string, int} */
    public function __serialize(): array
    {
        return [$this->number, $this->file, $this->microseconds];
    }

    /** @param array{int, string, int} $data */
    public function __unserialize(array $data): void
    {
        [$this->number, $this->file, $this->microseconds] = $data;
    }

    /** @return int number of the task, combined with the id of its worker */
    public function __invoke(): int
    {
        if (self::$starts === null) {
            $starts = fopen($this->file, 'a');
            \assert($starts !== false);
            self::$starts = $starts;
            self::$worker = TaskFunctions::pid();
        }
        fwrite(self::$starts, pack('V', $this->number));
        if ($this->microseconds > 0) {
            usleep($this->microseconds);
        }

        return $this->number << self::PID_BITS | self::$worker;
    }

    public static function run(self $task): int
    {
        return $task();
    }

    public static function numberOf(int $result): int
    {
        return $result >> self::PID_BITS;
    }

    public static function workerOf(int $result): int
    {
        return $result & (1 << self::PID_BITS) - 1;
    }

    /** @return array<int, int> number of starts by task */
    public static function starts(string $file): array
    {
        /** @var list<int> $numbers */
        $numbers = unpack('V*', (string) file_get_contents($file));

        $starts = array_count_values($numbers);
        ksort($starts);

        return $starts;
    }
}
