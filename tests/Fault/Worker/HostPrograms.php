<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Tests\Eventually;
use Spindle\Worker\PoolClosedException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

/** What processes do that have a pool and are no test themselves; see {@see \Spindle\Tests\Host}. */
final class HostPrograms
{
    /** Has all kinds of work done, for as long as it lives. */
    public static function work(string $context): void
    {
        $pool = self::pool($context, 3, timeout: 0.4);
        for (; ;) {
            $futures = array_map(static fn(Call $task): Future => $pool->submit($task)->catch(static fn() => null), [
                new Call('square', 3),
                new Call('sleep', sys_get_temp_dir() . '/begun', 0.02),
                new Call('forkAndExit'),
                new Call('forkThatLivesOn'),
                new Call('leaveThings', sys_get_temp_dir()),
                new Call('ignoreTerm', sys_get_temp_dir() . '/begun'),
                new Call('stop', sys_get_temp_dir() . '/begun'),
                new Call('bytes', 3 << 20),
                new Call('end', Ending::Kill),
                new Call('size', str_repeat('x', 3 << 20)),
            ]);
            array_map(static fn(Future $future): mixed => $future->await(), $futures);
        }
    }

    /** @return list<string> what came of a task each, in a process that has so few descriptors */
    public static function useFewDescriptors(string $context, int $tasks): array
    {
        return self::squares(self::pool($context, 2), $tasks);
    }

    /** @return list<list<string>> what came of a task while no descriptor was to be had, and of one after that */
    public static function useUpDescriptors(string $context, bool $beforeTheFirst): array
    {
        $pool = self::pool($context, 1, startTimeout: 1.0);
        if (!$beforeTheFirst) {
            self::squares($pool, 1);
            $pool->submit(new Call('end', Ending::ExitWith0))->ignore();
        }
        // Loaded beforehand, for a class file is a descriptor as well.
        $other = self::pool($context, 1);
        self::squares($other, 1);
        class_exists(WorkerStartException::class);
        $files = [];
        while (($file = @fopen('/dev/null', 'r')) !== false) {
            $files[] = $file;
        }
        $without = self::squares($pool, 1);
        array_map(fclose(...), $files);
        unset($other);

        return [$without, self::squares($pool, 3)];
    }

    /** @return list<list<string>> what came of a task while no process could be started, and of one after that */
    public static function needProcesses(string $context, string $cgroup): array
    {
        $pool = self::pool($context, 1, startTimeout: 3.0);
        self::squares($pool, 1);
        $pool->submit(new Call('end', Ending::ExitWith0))->ignore();
        file_put_contents("{$cgroup}/pids.max", '1');
        $without = self::squares($pool, 1);
        file_put_contents("{$cgroup}/pids.max", '20');

        return [$without, self::squares($pool, 3)];
    }

    /** @return array{string, bool, list<mixed>} what a fork of this process is told, whether it exited as it wanted, and what is left to this one */
    public static function fork(string $context, string $file): array
    {
        $pool = self::pool($context, 2);
        self::squares($pool, 4);
        $running = $pool->submit(new Call('sleep', "{$file}.begun", 0.3));
        Eventually::holds(static fn(): bool => is_file("{$file}.begun"), 'it runs');
        $fork = pcntl_fork();
        if ($fork === 0) {
            $said = [];
            foreach ([static fn() => $pool->submit(new Call('square', 1)), static fn() => $pool->map([1], Deeds::square(...)), $pool->close(...), $pool->kill(...)] as $use) {
                try {
                    $use();
                    $said[] = 'nothing';
                } catch (PoolClosedException $closed) {
                    $said[] = $closed->getMessage();
                }
            }
            file_put_contents($file, implode("\n", array_unique($said)));
            unset($pool, $running, $use);
            exit(7); // with its copy of all that the pool has
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        $slept = $running->await(new TimeoutCancellation(5));

        return [(string) file_get_contents($file), pcntl_wexitstatus($status) === 7, [$slept, ...self::squares($pool, 4)]];
    }

    /** @return list<string> */
    private static function squares(WorkerPool $pool, int $count): array
    {
        $outcomes = [];
        for ($i = 0; $i < $count; ++$i) {
            try {
                $square = $pool->submit(new Call('square', $i))->await(new TimeoutCancellation(10, 'There is no outcome'));
                $outcomes[] = $square === $i * $i ? 'done' : 'something else';
            } catch (\Throwable $thrown) {
                $outcomes[] = $thrown::class . ": {$thrown->getMessage()}";
            }
        }

        return $outcomes;
    }

    private static function pool(string $context, int $workers, ?float $timeout = null, float $startTimeout = 10.0): WorkerPool
    {
        /** @var WorkerContext $case */
        $case = \constant(WorkerContext::class . "::{$context}");

        return new WorkerPool($workers, 0, new WorkerPoolOptions(
            context: $case,
            timeout: $timeout,
            grace: 0.1,
            startTimeout: $startTimeout,
            onOutput: static fn() => null,
        ));
    }
}
