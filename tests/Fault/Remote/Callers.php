<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Internal\JobOutbox;
use Spindle\Remote\Internal\ReceivedOutcomes;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Eventually;
use Spindle\Tests\FreeDescriptors;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\TlsOptions;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

/** Programs of caller processes, which run until they are killed or have finished. */
final class Callers
{
    private const AT_ONCE = 250;

    /** @return int number of tasks in the engine */
    public static function dispatch(string $address, string $queue, int $tasks, string $log): int
    {
        $executor = self::executor($address, $queue);
        foreach (array_chunk(range(1, $tasks), self::AT_ONCE) as $numbers) {
            await(array_map(
                static fn(int $number): Future
                    => async($executor->dispatch(...), self::task($log, $number), "order-{$number}"),
                $numbers,
            ));
        }

        return $tasks;
    }

    /** @return int the sum of their results */
    public static function attach(string $address, string $queue, int $tasks): int
    {
        $executor = self::executor($address, $queue);
        $futures = array_map(static fn(int $number): Future => $executor->attach("order-{$number}"), range(1, $tasks));

        return (int) array_sum(await($futures));
    }

    /**
     * Waits for all tasks, and creates a file when it begins to wait.
     *
     * @return array{int, int, int} bytes for each that it waits for, at the end of the beginning and at most, and the
     *                              sum of their results
     */
    public static function wait(string $address, string $queue, int $tasks, string $file): array
    {
        $executor = self::executor($address, $queue);
        $futures = [$executor->attach('order-1')]; // code that the first call loads does not count
        \Amp\delay(0.1);
        gc_collect_cycles();
        memory_reset_peak_usage();
        $before = memory_get_usage();
        $futures = array_map(static fn(int $number): Future => $executor->attach("order-{$number}"), range(1, $tasks));
        gc_collect_cycles();
        $waiting = intdiv(memory_get_usage() - $before, $tasks);
        touch($file);
        $sum = (int) array_sum(await($futures));

        return [$waiting, intdiv(memory_get_peak_usage() - $before, $tasks), $sum];
    }

    /** @return \Closure(): int */
    private static function task(string $log, int $number): \Closure
    {
        return static fn(): int => LoggedTasks::run($log, $number);
    }

    private static function executor(string $address, string $queue): RemoteExecutor
    {
        return new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
    }

    /** @return list<int> exit codes of four forks that submit tasks, and the number of correct results here */
    public static function fork(string $address, string $queue): array
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $executor->submit(static fn(): int => 0)->await();
        $right = static function (string $who) use ($executor): int {
            $right = 0;
            for ($i = 0; $i < 20; ++$i) {
                $right += (int) ($executor->submit(static fn(): string => "{$who} {$i}")->await() === "{$who} {$i}");
            }

            return $right;
        };
        $forks = [];
        for ($i = 0; $i < 4; ++$i) {
            $forks[] = $pid = pcntl_fork();
            if ($pid === 0) {
                exit($right("fork {$i}") === 20 ? 0 : 1);
            }
        }
        $codes = [];
        $own = $right('parent');
        foreach ($forks as $pid) {
            pcntl_waitpid($pid, $status);
            $codes[] = \is_int($status) ? (int) pcntl_wexitstatus($status) : -1;
        }

        return [...$codes, $own];
    }

    public static function dropOutcomesOfManyBrokers(string $address, int $engine): never
    {
        $outcomes = [];
        for ($i = 0; $i < 20; ++$i) {
            $broker = new RedisBroker($address);
            $broker->status('queue', 'id'); // opens the connection
            $outcomes[] = $last = new ReceivedOutcomes($broker, 'queue', new JobOutbox($broker, 'queue', 'client'));
            $last->add('id', 0);
        }
        posix_kill($engine, \SIGSTOP);
        echo 'ends';

        exit;
    }

    public static function killDuringASubmission(string $address, string $queue, int $engine): never
    {
        self::submitWithoutAnswer($address, $queue, $engine)->kill();

        exit(7);
    }

    public static function cancelCloseDuringASubmission(string $address, string $queue, int $engine): never
    {
        try {
            self::submitWithoutAnswer($address, $queue, $engine)->close(new TimeoutCancellation(0.01));
        } catch (CancelledException) {
            exit(7);
        }

        exit(1);
    }

    public static function cancelDuringASubmission(string $address, string $queue, int $engine): never
    {
        $cancellation = new DeferredCancellation();
        self::submitWithoutAnswer($address, $queue, $engine, $cancellation->getCancellation());
        $cancellation->cancel();

        exit(7);
    }

    /** Submits a task, stops the engine, and submits another task. Returns when the second request was sent. */
    private static function submitWithoutAnswer(
        string $address,
        string $queue,
        int $engine,
        ?Cancellation $cancellation = null,
    ): RemoteExecutor {
        $executor = self::executor($address, $queue);
        $executor->submit('time', $cancellation)->ignore(); // opens the connection and the mailbox
        posix_kill($engine, \SIGSTOP);
        async(static fn() => $executor->submit('time', $cancellation))->ignore();
        delay(0.01); // the request is sent

        return $executor;
    }

    /**
     * Makes a request with TLS before a fork ends, and one after this.
     *
     * @return list<bool> whether each request was answered
     */
    public static function forkWithTls(string $address, string $authority, ?bool $endsByAnError): array
    {
        $broker = new RedisBroker($address, new TlsOptions(caFile: $authority));
        $isAnswered = [$broker->status('queue', 'id') === null];
        $pid = $endsByAnError === null ? -1 : pcntl_fork();
        if ($pid === 0) {
            ini_set('memory_limit', '32M');
            exit($endsByAnError ? \strlen(str_repeat('x', 64 << 20)) : 0);
        }
        $pid > 0 ? pcntl_waitpid($pid, $status) : null;
        try {
            $isAnswered[] = $broker->status('queue', 'id') === null;
        } catch (BrokerUnavailableException) {
            $isAnswered[] = false;
        }

        return $isAnswered;
    }

    /**
     * Reads no result until all tasks are done. The results exceed the memory.
     *
     * @return list<int> the first bytes of the results
     */
    public static function takeLate(string $address, string $queue, int $tasks, bool $inOrder): array
    {
        ini_set('memory_limit', '64M');
        $broker = new RedisBroker($address);
        $executor = new RemoteExecutor($broker, $queue, new SigningKeys([AgentProgram::KEY]));
        $task = static fn(int $number): string => str_pad((string) $number, $number % 2 === 0 ? 300_000 : 50_000);
        $taken = [];
        foreach ($inOrder ? $executor->map(
            range(1, $tasks),
            $task,
        ) : $executor->mapUnordered(range(1, $tasks), $task) as $result) {
            if ($taken === []) {
                Eventually::holds(
                    static fn(): bool => $broker->statistics($queue)['done_total'] === $tasks,
                    'all is done',
                    30.0,
                );
                Eventually::standsStill(
                    static fn(): int => memory_get_usage() >> 20,
                    'all outcomes were fetched',
                    30.0,
                );
            }
            $taken[] = (int) $result;
        }

        return $taken;
    }

    /** @return string message of the first connection that finds no free descriptor */
    public static function withoutDescriptors(string $address, string $queue): string
    {
        [$served, $other] = [new RedisBroker($address), new RedisBroker($address)];
        $served->status($queue, 'any');
        $files = FreeDescriptors::useAll();
        try {
            $other->status($queue, 'any');
        } catch (\Throwable $failure) {
            $files = [];

            return $failure::class . ': ' . $failure->getMessage();
        }

        return '';
    }

    /** Reads one item of a generator that has more items than the window, and no others. */
    public static function readSlowly(string $address, string $queue, string $file): void
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $items = $executor->submit(static function (): \Generator {
            yield from range(1, 1000);
        })->await();
        if ($items->valid()) {
            touch($file);
        }
        delay(600.0);
    }
}
