<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\FreeDescriptors;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

use function Amp\delay;

/** Programs for processes that own a pool outside of the test process; see {@see \Spindle\Tests\Host}. */
final class HostPrograms
{
    /** Submits all kinds of tasks until it is killed. */
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
                new Call('end', ProcessEnding::Kill),
                new Call('size', str_repeat('x', 3 << 20)),
            ]);
            array_map(static fn(Future $future): mixed => $future->await(), $futures);
        }
    }

    /**
     * @return list<string> types of two outcomes: of a task with a result of this size, and of one with a small result
     */
    public static function receive(string $context, int $bytes): array
    {
        $pool = self::pool($context, 1);
        $outcomes = [];
        foreach ([$bytes, 3] as $size) {
            try {
                $outcomes[] = get_debug_type($pool->submit(new Call('bytes', $size))->await());
            } catch (\Throwable $thrown) {
                $outcomes[] = $thrown::class;
            }
        }

        return $outcomes;
    }

    /** @return list<string> outcomes of tasks in a process with few descriptors */
    public static function useFewDescriptors(string $context, int $tasks): array
    {
        return self::squares(self::pool($context, 2), $tasks);
    }

    /** @return list<list<string>> outcomes of a task without a free descriptor, and of later tasks */
    public static function useUpDescriptors(string $context, bool $beforeTheFirst): array
    {
        $pool = self::pool($context, 1, startTimeout: 1.0);
        if (!$beforeTheFirst) {
            self::squares($pool, 1);
            $pool->submit(new Call('end', ProcessEnding::ExitWith0))->catch(static fn() => null)->await();
        }
        // Load the classes of the task and of its caller now: loading needs a descriptor.
        array_map(
            class_exists(...),
            [Call::class, TaskFunctions::class, TimeoutCancellation::class, CancelledException::class],
        );
        (new TimeoutCancellation(0.0))->isRequested();
        $files = FreeDescriptors::useAll();
        $without = self::squares($pool, 1);
        array_map(fclose(...), $files);

        return [$without, self::squares($pool, 3)];
    }

    /** Returns the failure of a task that throws while this process has no free descriptor, after a retry. */
    public static function failWithoutDescriptors(string $context): string
    {
        $pool = self::pool($context, 1, retries: 1);
        self::squares($pool, 1);
        class_exists(CancelledException::class);
        (new TimeoutCancellation(0.0))->isRequested();
        $files = FreeDescriptors::useAll();
        try {
            $pool->submit(new Call('square', 'no number'))->await(new TimeoutCancellation(10));
            $outcome = 'no failure';
        } catch (\Throwable $thrown) {
            $outcome = $thrown::class . ', ' . get_debug_type($thrown->getPrevious()) . ": {$thrown->getMessage()}";
        }
        array_map(fclose(...), $files);

        return $outcome;
    }

    /**
     * @return list<string> outcomes of tasks, each in a new worker that has to connect while strangers take all
     *         descriptors
     */
    public static function resistStrangers(string $context): array
    {
        $pool = self::pool($context, 1, maxTasks: 1);
        self::squares($pool, 3); // loads all classes, because loading needs a descriptor
        [$siege, $end] = Strangers::besiege(Strangers::addresses()[0], 300);
        try {
            return self::squares($pool, 6);
        } finally {
            fclose($end);
            proc_close($siege);
        }
    }

    /**
     * @return list<string> outcomes while the loop can watch no more descriptors, afterwards, and while it cannot
     *         again but has a worker
     */
    public static function useHighDescriptors(string $context, string $file): array
    {
        $pool = self::pool($context, 2);
        $open = static fn(): array => array_map(static fn(): mixed => fopen('/dev/null', 'r'), range(1, 1100));
        $files = $open();
        $outcomes = self::squares($pool, 1);
        unset($files);
        $outcomes = [...$outcomes, ...self::squares($pool, 1)];
        $running = $pool->submit(new Call('sleep', $file, 1.5));
        Eventually::holds(static fn(): bool => is_file($file), 'it runs');
        $files = $open();
        $outcomes = [...$outcomes, ...self::squares($pool, 1)];
        $running->await();

        return $outcomes;
    }

    /**
     * @return list<string> outcomes without a working directory, beside a worker that has one, after its end, and with
     *         a working directory
     */
    public static function loseDirectory(string $context, string $directory): array
    {
        $pool = self::pool($context, 2);
        mkdir($directory);
        chdir($directory);
        rmdir($directory);
        $outcomes = self::squares($pool, 1);
        chdir('/');
        $running = $pool->submit(new Call('sleep', "{$directory}.begun", 0.5));
        Eventually::holds(static fn(): bool => is_file("{$directory}.begun"), 'it runs');
        mkdir($directory);
        chdir($directory);
        rmdir($directory);
        $outcomes = [...$outcomes, ...self::squares($pool, 1)];
        $running->await();
        chdir('/');

        return [...$outcomes, ...self::squares($pool, 1)];
    }

    /** @return list<string> outcomes of tasks that finished while a fork of this process ran its event loop */
    public static function forkThatLoops(string $context, string $file): array
    {
        $pool = self::pool($context, 2);
        self::squares($pool, 4);
        $running = [
            $pool->submit(new Call('sleep', "{$file}0", 0.2)),
            $pool->submit(new Call('sleep', "{$file}1", 0.2)),
        ];
        Eventually::holds(static fn(): bool => is_file("{$file}0") && is_file("{$file}1"), 'they run');
        $fork = pcntl_fork();
        if ($fork === 0) {
            delay(0.5);
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($fork, $status); // until then, this process reads nothing

        return array_map(static function (Future $future): string {
            $slept = $future->await(new TimeoutCancellation(5, 'There is no outcome'));

            return $slept === 'slept' ? 'done' : 'something else';
        }, $running);
    }

    /**
     * @return array{list<string>, int, list<mixed>} what each wait in a fork threw, how the fork ended, and the
     *         outcomes in this process
     */
    public static function forkThatWaits(string $context, string $directory): array
    {
        $pool = self::pool($context, 3);
        $gate = new Gate($directory);
        $future = $pool->submit(static fn(): string => $gate->pass('running'));
        $items = $pool->submit(static function () use ($gate): \Generator {
            yield 'before';
            yield $gate->pass('streaming');
        })->await();
        $map = $pool->map(range(0, 2999), TaskFunctions::square(...));
        $streamed = [$items->current()];
        $squares = [$map->current()];
        $gate->awaitTasks(2);
        $fork = pcntl_fork();
        if ($fork === 0) {
            pcntl_alarm(20);
            $said = [];
            foreach ([
                $future->await(...),
                static fn() => iterator_to_array($map, false),
                static fn() => iterator_to_array($items, false),
            ] as $wait) {
                try {
                    $wait();
                    $said[] = 'nothing';
                } catch (ExecutorClosedException $closed) {
                    $said[] = $closed->getMessage();
                }
            }
            file_put_contents("{$directory}/said", implode("\n", $said));
            exit(7);
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        $gate->open();
        for ($map->next(); $map->valid(); $map->next()) {
            $squares[] = $map->current();
        }
        for ($items->next(); $items->valid(); $items->next()) {
            $streamed[] = $items->current();
        }
        $isRight = $squares === array_map(TaskFunctions::square(...), range(0, 2999));

        return [
            explode("\n", (string) file_get_contents("{$directory}/said")),
            pcntl_wexitstatus($status),
            [$future->await(new TimeoutCancellation(5)), $isRight, $streamed],
        ];
    }

    /** @return list<list<string>> outcomes of a task while no process can be started, and of later tasks */
    public static function needProcesses(string $context, string $cgroup): array
    {
        $pool = self::pool($context, 1, startTimeout: 3.0);
        self::squares($pool, 1);
        $pool->submit(new Call('end', ProcessEnding::ExitWith0))->ignore();
        file_put_contents("{$cgroup}/pids.max", '1');
        $without = self::squares($pool, 1);
        file_put_contents("{$cgroup}/pids.max", '20');

        return [$without, self::squares($pool, 3)];
    }

    /** @return array{string, list<string>} exception of a cancelled task, and later outcomes */
    public static function cancelRunningTask(string $context, string $file): array
    {
        $pool = self::pool($context, 1);
        $cancellation = new DeferredCancellation();
        $running = $pool->submit(static function () use ($file): string {
            file_put_contents("{$file}.new", (string) getmypid());
            rename("{$file}.new", $file);

            return TaskFunctions::sleep("{$file}.sleeps");
        }, $cancellation->getCancellation());
        Eventually::holds(static fn(): bool => is_file($file), 'it runs', 20.0);
        $cancellation->cancel();
        try {
            $thrown = $running->await();
        } catch (\Throwable $failure) {
            $thrown = $failure::class;
        }

        $worker = (int) file_get_contents($file);
        Eventually::holds(static fn(): bool => !posix_kill($worker, 0), 'its worker has ended', 20.0);

        return [$thrown, self::squares($pool, 1)];
    }

    /**
     * @return array{string, bool, list<mixed>} errors in a fork of this process, whether it exited as intended, and
     *         later outcomes in this process
     */
    public static function fork(string $context, string $file): array
    {
        $pool = self::pool($context, 2);
        self::squares($pool, 4);
        $running = $pool->submit(new Call('sleep', "{$file}.begun", 0.3));
        Eventually::holds(static fn(): bool => is_file("{$file}.begun"), 'it runs');
        $fork = pcntl_fork();
        if ($fork === 0) {
            $said = [];
            foreach ([
                static fn() => $pool->submit(new Call('square', 1)),
                static fn() => $pool->map([1], TaskFunctions::square(...)),
                $pool->close(...),
                $pool->kill(...),
            ] as $use) {
                try {
                    $use();
                    $said[] = 'nothing';
                } catch (ExecutorClosedException $closed) {
                    $said[] = $closed->getMessage();
                }
            }
            file_put_contents($file, implode("\n", array_unique($said)));
            unset($pool, $running, $use);
            exit(7); // with its copy of everything that the pool has
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        $slept = $running->await(new TimeoutCancellation(5));

        return [
            (string) file_get_contents($file),
            pcntl_wexitstatus($status) === 7,
            [$slept, ...self::squares($pool, 4)],
        ];
    }

    /**
     * Forks while tasks of all kinds run. The fork cancels them, drops the pool and exits.
     *
     * @return array<string, mixed> whether the fork exited as intended, and outcomes in this process
     */
    public static function forkInALoop(string $context, string $directory): array
    {
        $pool = self::pool($context, 3);
        $gate = new Gate($directory);
        $cancellation = new DeferredCancellation();
        $task = $pool->submit(static fn(): string => $gate->pass('running'), $cancellation->getCancellation());
        $items = $pool->submit(static function () use ($gate): \Generator {
            yield 'before';
            yield $gate->pass('streaming');
            yield 'after';
        })->await();
        $gate->awaitTasks(2);
        $squares = $streamed = [];
        $status = null;
        $loop = $pool->map(range(0, 4999), TaskFunctions::square(...), $cancellation->getCancellation());
        foreach ($loop as $square) {
            $squares[] = $square;
            if ($status !== null) {
                continue;
            }
            $fork = pcntl_fork();
            if ($fork === 0) {
                $cancellation->cancel();
                $told = EventLoop::getSuspension(); // one turn of the loop delivers the cancellation, and nothing else
                EventLoop::queue($told->resume(...));
                $told->suspend();
                unset($loop, $items, $task, $pool);
                exit(7);
            }
            pcntl_waitpid($fork, $status);
        }
        \assert(\is_int($status));
        $gate->open();
        foreach ($items as $item) {
            $streamed[] = $item;
        }

        return [
            'exited' => pcntl_wexitstatus($status) === 7,
            'loop' => $squares,
            'task' => $task->await(new TimeoutCancellation(5)),
            'items' => $streamed,
        ];
    }

    /** @return list<string> */
    private static function squares(WorkerPool $pool, int $count): array
    {
        $outcomes = [];
        for ($i = 0; $i < $count; ++$i) {
            try {
                $square = $pool->submit(new Call(
                    'square',
                    $i,
                ))->await(new TimeoutCancellation(10, 'There is no outcome'));
                $outcomes[] = $square === $i * $i ? 'done' : 'something else';
            } catch (\Throwable $thrown) {
                $outcomes[] = $thrown::class . ": {$thrown->getMessage()}";
            }
        }

        return $outcomes;
    }

    private static function pool(
        string $context,
        int $workers,
        ?float $timeout = null,
        float $startTimeout = 10.0,
        ?int $maxTasks = null,
        int $retries = 0,
    ): WorkerPool {
        /** @var WorkerContext $case */
        $case = \constant(WorkerContext::class . "::{$context}");

        return new WorkerPool($workers, $retries, new WorkerPoolOptions(
            context: $case,
            timeout: $timeout,
            gracePeriod: 0.1,
            maxTasks: $maxTasks,
            startTimeout: $startTimeout,
            onOutput: static fn() => null,
        ));
    }
}
