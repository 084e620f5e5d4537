<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\ProcessStatus;

/** A process and its descendants, from /proc. */
final readonly class ProcessTree
{
    /** Field in /proc/PID/stat, counted from after the name. */
    private const PARENT = 2;

    public function __construct(private int $root) {}

    /** @return list<int> the process itself first; empty when it does not exist */
    public function pids(): array
    {
        $children = $pids = [];
        foreach ((array) glob('/proc/[0-9]*/stat') as $file) {
            // The name in parentheses may contain anything, so fields are counted after it.
            $stat = (string) @file_get_contents((string) $file);
            $parent = (int) (explode(' ', substr($stat, (int) strrpos($stat, ')')))[self::PARENT] ?? 0);
            $children[$parent][] = (int) basename(\dirname((string) $file));
        }
        for ($next = is_dir("/proc/{$this->root}") ? [$this->root] : []; $next !== [];) {
            $pids[] = $pid = array_shift($next);
            $next = [...$next, ...$children[$pid] ?? []];
        }

        return $pids;
    }

    /** @return array<int, float> user and system seconds by process id, of existing processes */
    public function cpu(): array
    {
        $pids = $this->pids();

        return array_combine($pids, array_map(static fn(int $pid): float => (new ProcessStatus($pid))->cpu(), $pids));
    }

    /**
     * @param list<int> $pids
     *
     * @return int bytes; shared memory is divided among its users
     */
    public static function memoryOf(array $pids): int
    {
        $kilobytes = 0;
        foreach ($pids as $pid) {
            $kilobytes += preg_match(
                '/^Pss:\s*(\d+) kB$/m',
                (string) @file_get_contents("/proc/{$pid}/smaps_rollup"),
                $match,
            ) === 1
                ? (int) $match[1]
                : 0;
        }

        return 1024 * $kilobytes;
    }
}
