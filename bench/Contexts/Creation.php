<?php

declare(strict_types=1);

namespace Spindle\Bench\Contexts;

use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Launcher\Process\Vector;
use Spindle\Worker\WorkerPool;

/**
 * Creates N contexts at once, then waits for all of them.
 *
 * Other classes are used only where necessary: a fork copies the memory of its process, which should stay small.
 */
final class Creation
{
    /**
     * @return float seconds
     *
     * @throws \RuntimeException when some did not end
     */
    public static function seconds(Way $way, int $max): float
    {
        $create = match ($way) {
            Way::Thread => self::threads(...),
            Way::Fork => self::forks(...),
            Way::ForkTwice => self::forksCountedTwice(...),
            Way::ProcOpen, Way::ProcOpenPhp => static fn(int $max): int => self::opened($max, $way->command()),
            Way::PosixSpawn, Way::PosixSpawnPhp => self::spawning($way->command()),
            Way::Worker => self::working(),
        };
        $begin = hrtime(true);
        $count = $create($max);
        $seconds = (hrtime(true) - $begin) / 1e9;

        return $count === $max ? $seconds : throw new \RuntimeException("only {$count} of {$max} ended");
    }

    private static function threads(int $max): int
    {
        $runtimes = [];
        for ($i = 0; $i < $max; ++$i) {
            $runtimes[] = $runtime = new \parallel\Runtime();
            $runtime->run(static function (): void {});
        }
        array_walk($runtimes, static fn(\parallel\Runtime $runtime) => $runtime->close());

        return \count($runtimes);
    }

    private static function forks(int $max): int
    {
        for ($i = 0; $i < $max; ++$i) {
            if (pcntl_fork() === 0) {
                exit(0);
            }
        }

        return self::waitForAll();
    }

    private static function waitForAll(): int
    {
        $ended = 0;
        while (pcntl_wait($status) > 0) {
            ++$ended;
        }

        return $ended;
    }

    /** Counts each fork twice and waits for none, as the benchmark "Threads against processes" does. */
    private static function forksCountedTwice(int $max): int
    {
        $forks = [];
        while (\count($forks) < $max) {
            $pid = pcntl_fork();
            if ($pid === 0) {
                exit(0);
            }
            $forks[] = $pid;
            $forks[] = $pid;
        }

        return $max;
    }

    /** @param non-empty-list<string> $command */
    private static function opened(int $max, array $command): int
    {
        $processes = [];
        for ($i = 0; $i < $max; ++$i) {
            $process = proc_open($command, [], $pipes);
            if ($process !== false) {
                $processes[] = $process;
            }
        }

        // PHP before 8.3 may not know the exit status of a process that ended before the next one was started.
        return \count(array_map(proc_close(...), $processes));
    }

    /**
     * @param non-empty-list<string> $command
     *
     * @return \Closure(int): int
     */
    private static function spawning(array $command): \Closure
    {
        $libc = new Libc();
        $c = $libc->functions;
        $pid = $libc->integers('int[1]');
        [$arguments, $environment] = [new Vector($libc, false), new Vector($libc, false)];
        [$actions, $attributes] = [$libc->new('spawn_actions[1]'), $libc->new('spawn_attributes[1]')];
        $c->posix_spawn_file_actions_init($actions);
        $c->posix_spawnattr_init($attributes);
        $arguments->fill($command);
        $environment->fill(['LC_ALL=C']);

        return static function (int $max) use (
            $c,
            $pid,
            $command,
            $actions,
            $attributes,
            $arguments,
            $environment,
        ): int {
            for ($i = 0; $i < $max; ++$i) {
                $c->posix_spawn($pid, $command[0], $actions, $attributes, $arguments->pointers, $environment->pointers);
            }

            return self::waitForAll();
        };
    }

    /** @return \Closure(int): int */
    private static function working(): \Closure
    {
        $pool = new WorkerPool(1);
        $pool->submit('getmypid')->await();

        return static function (int $max) use ($pool): int {
            $ended = 0;
            while ($ended < $max) {
                $pool->submit('getmypid')->await();
                ++$ended;
            }

            return $ended;
        };
    }
}
