<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

use Spindle\Bench\Http\ProcessTree;

/** Resources that this process has used so far. */
final readonly class Usage
{
    /**
     * @param float $cpu  user and system seconds, including ended children and their descendants
     * @param int   $peak peak of resident memory in bytes, of this process alone
     */
    private function __construct(
        public float $cpu,
        public int $peak,
    ) {}

    public static function now(): self
    {
        [$own, $children] = [self::read(0), self::read(1)];

        return new self(
            self::cpu($own) + self::cpu($children),
            $own['ru_maxrss'] * (\PHP_OS_FAMILY === 'Darwin' ? 1 : 1024),
        );
    }

    /**
     * Returns the CPU seconds of this process and all its descendants, running or ended.
     *
     * The difference of two values is the usage in between.
     */
    public static function ofTree(): float
    {
        $seconds = self::now()->cpu;
        foreach (\array_slice((new ProcessTree((int) getmypid()))->pids(), 1) as $pid) {
            $seconds += (new ProcessStatus($pid))->cpuWithChildren();
        }

        return $seconds;
    }

    /** @param array<string, int> $usage */
    private static function cpu(array $usage): float
    {
        return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
            + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
    }

    /** @return array<string, int> */
    private static function read(int $who): array
    {
        /** @var array<string, int> $usage */
        $usage = getrusage($who);

        return $usage;
    }
}
