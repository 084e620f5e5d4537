<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\Testing\TemporaryRedisException;
use Spindle\Remote\Testing\TemporaryRedisOptions;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\delay;

/** Faults of an engine in use: it dies, loses its data, loads, is full, or becomes a replica. */
final class EngineFaultsTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnEngine;

    /** Connections that the callers and agents of one test may need without a reconnect storm. */
    private const CALM = 30;

    private int $looks = 0;
    private int $confirmed = 0;

    protected function deadline(): int
    {
        return 120 + 5 * Scale::of(30);
    }

    public function testTasksSubmittedWhileTheEngineIsKilledRunOnce(): void
    {
        $redis = $this->engine(['appendfsync' => 'always']);
        $impatient = $this->executor(brokerRetryTimeout: 0.0);
        $patient = $this->executor();
        $log = $this->file('log', '');
        $task = static fn(): int => CountedTasks::note($log);
        $waiting = $ids = [];
        for ($round = 1; $round <= Scale::of(30); ++$round) {
            $waiting[] = $patient->submit($task);
            $failed = [];
            $this->confirmed = 0;
            $submit = function (int $caller) use ($impatient, $task, $round, &$ids, &$failed): void {
                for ($i = 1; $failed === []; ++$i) {
                    $ids[] = $id = "{$round}-{$caller}-{$i}";
                    try {
                        $impatient->dispatch($task, $id);
                        ++$this->confirmed;
                    } catch (BrokerUnavailableException) {
                        $failed[] = $id;
                    }
                }
            };
            $submitting = array_map(static fn(int $caller): Future => async($submit, $caller), range(1, 10));
            Eventually::holds(fn(): bool => $this->hasConfirmed(50), 'they are being submitted');
            $redis->kill();
            Future\await($submitting);
            $before = \count($ids) - \count($failed);
            $redis->restart();
            $there = $this->statistics()['submitted_total'] - $round;
            self::assertGreaterThanOrEqual($before, $there);
            self::assertLessThanOrEqual(\count($ids), $there);
            foreach ($failed as $id) {
                $patient->dispatch($task, $id);
            }
        }
        $this->agentAt($redis->url(), $this->queue());
        $outcomes = Future\await([...$waiting, ...array_map($patient->attach(...), $ids)]);

        self::assertSame([1], array_values(array_unique($outcomes, \SORT_REGULAR)));
        $count = \count($outcomes);
        self::assertCount($count, array_unique(Text::lines($log)));
        self::assertCount($count, Text::lines($log));
        $statistics = $this->statistics();
        self::assertSame([$count, $count, 0], [
            $statistics['submitted_total'],
            $statistics['done_total'],
            $statistics['dead'],
        ]);
    }

    public function testAnEngineThatRestartsEmptyLosesPendingJobsAndServesLaterOnes(): void
    {
        $redis = $this->engine();
        $executor = $this->executor();
        $directory = $this->directory('runs');
        $agent = $this->agentAt($redis->url(), $this->queue(), 1, ...self::SHORT);
        $lost = ['running' => $executor->submit(static fn(): int => RecordedTasks::linger($directory, 9))];
        $this->waitForFile("{$directory}/1");
        $lost['waiting'] = $executor->submit(static fn(): int => 1);
        $lost['attached'] = $executor->attach($executor->dispatch(static fn(): int => 1, 'own', delay: 60.0));
        $lost['mapped'] = async(static fn(): array => iterator_to_array($executor->map([1, 2], abs(...))));
        Eventually::holds(fn(): bool => $this->statistics()['submitted_total'] === 5, 'all are there');
        $redis->kill();
        exec('rm -rf ' . escapeshellarg("{$redis->directory}/data") . '/*');
        $late = self::later($executor, 6);
        $this->waitForUnansweredCalls('submit');
        $redis->restart();
        $began = hrtime(true);
        foreach ($lost as $which => $future) {
            self::thrown(JobLostException::class, static fn() => $future->await());
            self::assertLessThan(8.0, (hrtime(true) - $began) / 1e9);
        }

        self::assertSame(6, $late->await());
        self::assertSame(7, $executor->submit(static fn(): int => 7)->await());
        $worker = (int) file_get_contents("{$directory}/1");
        Eventually::holds(static fn(): bool => !Processes::isAlive($worker), 'what nobody waits for runs no more');
        self::assertTrue($agent->isRunning());
        $asked = $this->engineInfo('cmdstat_evalsha:calls');
        delay(1.0); // The test asserts a rate: fewer than 50 requests in a second.
        self::assertLessThan(50, $this->engineInfo('cmdstat_evalsha:calls') - $asked);
        self::assertLessThan(self::CALM, $this->engineInfo('total_connections_received'));
    }

    public function testAnEngineThatLoadsItsDataIsWaitedFor(): void
    {
        $redis = $this->engine(['enable-debug-command' => 'local', 'key-load-delay' => 100]);
        $redis->command('EVAL', "for i = 1, 15000 do redis.call('SET', 'k' .. i, i) end", '0');
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue());
        self::assertSame(1, $executor->submit(static fn(): int => 1)->await());
        $directory = $this->directory('runs');
        $running = $executor->submit(static fn(): int => CountedTasks::tick($directory, 1, 0.5));
        $this->waitForFile("{$directory}/1.began");
        $waiting = $executor->dispatch(static fn(): int => 2, delay: 0.2);
        $connections = $this->engineInfo('total_connections_received');
        $doing = $this->send('DEBUG', 'LOADAOF');
        Eventually::holds($this->isLoading(...), 'it loads');
        $others = [];
        $late = new RedisBroker($redis->url());
        foreach ([$executor, $this->executor($late)] as $caller) {
            for ($i = 3; $i < 10; ++$i) {
                $others[] = self::later($caller, 3);
            }
        }
        $this->waitForUnansweredCalls('submit', 2);
        self::assertTrue($this->isLoading());
        $failure = self::thrown(
            BrokerUnavailableException::class,
            static fn() => (new RedisBroker($redis->url()))->durability(),
        );
        self::assertStringContainsString('loading', $failure->getMessage());

        self::assertEquals(array_fill(0, 14, 3), Future\await($others));
        self::assertSame([1, 2], [$running->await(), $executor->attach($waiting)->await()]);
        $statistics = $this->statistics();
        self::assertSame([17, 0, 0], [$statistics['done_total'], $statistics['lost_total'], $statistics['dead']]);
        self::assertLessThan(self::CALM, $this->engineInfo('total_connections_received') - $connections - $this->looks);
        fclose($doing);
    }

    public function testAnEngineWithoutMemoryRefusesNewTasksAndHasTheOthersDone(): void
    {
        $redis = $this->engine();
        $executor = $this->executor();
        $ballast = str_repeat('x', 100_000);
        $ids = [];
        for ($i = 0; $i < 20; ++$i) {
            $ids[] = $executor->dispatch(static fn(): int => \strlen($ballast));
        }
        $running = $this->directory('runs');
        $this->agentAt($redis->url(), $this->queue(), 2, ...self::SHORT);
        $long = $executor->submit(static fn(): int => CountedTasks::tick($running, 1, 2.5)); // longer than a lease
        $items = $executor->submit(static fn(): \Generator => CountedTasks::count(20, 0.05))->await();
        self::assertSame(1, $items->current());
        $redis->command('CONFIG', 'SET', 'maxmemory', '1mb');

        $failure = self::thrown(
            QueueFullException::class,
            fn() => $this->executor(brokerRetryTimeout: 0.3)->submit(static fn(): int => 1),
        );
        self::assertStringContainsString('its memory is full', $failure->getMessage());
        self::assertSame(
            array_fill(0, 20, 100_000),
            array_map(static fn(string $id): mixed => $executor->attach($id)->await(), $ids),
        );
        self::assertSame(1, $long->await());
        $late = async(static fn(): array => iterator_to_array($executor->map([-5], abs(...))));
        delay(0.2); // The test asserts that map() waits for room during this time.
        self::assertFalse($late->isComplete());
        $redis->command('CONFIG', 'SET', 'maxmemory', '0');
        self::assertSame([5], $late->await());
        self::assertSame(range(1, 20), iterator_to_array($items, false));
        $statistics = $this->statistics();
        self::assertSame([23, 0, 0], [$statistics['done_total'], $statistics['lost_total'], $statistics['dead']]);
        self::assertLessThan(self::CALM, $this->engineInfo('total_connections_received') - $this->looks);
    }

    /** @param 'always'|'everysec' $fsync */
    #[DataProvider('tiers')]
    public function testADiskThatIsFullLosesNothingThatWasConfirmed(string $fsync): void
    {
        // Writing beyond the limit of a file's size is an error instead of a signal.
        $limit = $this->file('limit', '2000');
        $redis = $this->engine(['appendfsync' => $fsync], new TemporaryRedisOptions(
            binary: $this->script(
                'redis-server',
                "trap '' XFSZ; ulimit -S -f \$(cat {$limit}); "
                    . 'exec $(command -v redis-server || command -v valkey-server) "$@"',
            ),
        ));
        $executor = $this->executor(new RedisBroker($redis->url(), timeout: 1.0), brokerRetryTimeout: 0.5);
        $log = $this->file('log', '');
        $ballast = str_repeat('x', 100_000);
        $failure = null;
        $ids = [];
        while ($failure === null) {
            try {
                $ids[] = $executor->dispatch(static fn(): int => \strlen($ballast) * CountedTasks::note($log));
            } catch (BrokerUnavailableException $failure) {
                self::assertGreaterThan(5, \count($ids));
            }
        }
        if ($fsync === 'everysec') {
            self::assertStringContainsString("it can't write to its disk", $failure->getMessage());
        }
        if ($redis->pid() === null) { // the engine exits instead of confirming what it can't write
            file_put_contents($limit, 'unlimited');
            $redis->restart();
            $this->agentAt($redis->url(), $this->queue());
        } else {
            $refused = $this->refusedWrites();
            $this->agentAt($redis->url(), $this->queue());
            Eventually::holds(fn(): bool => $this->refusedWrites() > $refused, 'the agent finds no room');
            exec("prlimit --pid {$redis->pid()} --fsize=unlimited:");
        }
        $patient = $this->executor();
        self::assertSame(
            array_fill(0, \count($ids), 100_000),
            array_map(static fn(string $id): mixed => $patient->attach($id)->await(), $ids),
        );
        self::assertSame(1, $patient->submit(static fn(): int => 1)->await());
        self::assertSame($ids, array_values(array_intersect($ids, Text::lines($log))));
        self::assertCount(\count(array_unique(Text::lines($log))), Text::lines($log), 'each ran once');
        self::assertLessThan(self::CALM, $this->engineInfo('total_connections_received') - $this->looks);
    }

    /** @return iterable<string, array{'always'|'everysec'}> */
    public static function tiers(): iterable
    {
        yield 'durable' => ['always'];
        yield 'fast' => ['everysec'];
    }

    public function testAnEngineThatIsAReplicaForAWhileIsWaitedFor(): void
    {
        $redis = $this->engine();
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue());
        $directory = $this->directory('runs');
        $running = $executor->submit(static fn(): int => CountedTasks::tick($directory, 1, 0.5));
        $this->waitForFile("{$directory}/1.began");
        $redis->command('REPLICAOF', '127.0.0.1', '1');
        self::assertGreaterThan(
            3,
            $this->impatientConnections(),
            'it connects anew for each try: its name may lead to another one by now',
        );
        $connections = $this->engineInfo('total_connections_received');
        $failure = self::thrown(
            BrokerUnavailableException::class,
            fn() => $this->executor(brokerRetryTimeout: 0.3)->submit(static fn(): int => 1),
        );
        self::assertStringContainsString('it is a replica', $failure->getMessage());
        $late = self::later($executor, 2);
        $asked = $this->engineInfo('cmdstat_evalsha:calls');
        delay(1.0); // The test asserts a rate: fewer than 50 requests in a second.
        self::assertLessThan(50, $this->engineInfo('cmdstat_evalsha:calls') - $asked);
        $redis->command('REPLICAOF', 'NO', 'ONE');

        self::assertSame([1, 2], [$running->await(), $late->await()]);
        self::assertSame(3, $executor->submit(static fn(): int => 3)->await());
        $statistics = $this->statistics();
        self::assertSame([3, 0, 0], [$statistics['done_total'], $statistics['lost_total'], $statistics['dead']]);
        self::assertLessThan(self::CALM, $this->engineInfo('total_connections_received') - $connections);
    }

    private function impatientConnections(): int
    {
        $before = $this->engineInfo('total_connections_received');
        self::thrown(
            BrokerUnavailableException::class,
            fn() => $this->executor(new RedisBroker($this->engine()->url()), 1.5)->submit(static fn(): int => 1),
        );
        return $this->engineInfo('total_connections_received') - $before;
    }

    /**
     * Submits in the next turn of the loop.
     *
     * @return Future<mixed> its result
     */
    private static function later(RemoteExecutor $executor, int $value): Future
    {
        return async(static function () use ($executor, $value): mixed {
            return $executor->submit(static fn(): int => $value)->await();
        });
    }

    private function hasConfirmed(int $count): bool
    {
        return $this->confirmed >= $count;
    }

    /** Returns how often the engine has refused a write because of its disk. */
    private function refusedWrites(): int
    {
        ++$this->looks;
        $errors = $this->engine()->command('INFO', 'errorstats');
        $hasSome = \is_string($errors) && preg_match('/^errorstat_MISCONF:count=(\d+)/m', $errors, $match) === 1;

        return $hasSome ? (int) $match[1] : 0;
    }

    private function isLoading(): bool
    {
        ++$this->looks;
        try {
            $this->engine()->command('GET', 'any');

            return false;
        } catch (TemporaryRedisException $failure) {
            return str_starts_with($failure->output, 'LOADING');
        }
    }

    /** @return resource the connection of a command whose answer is not awaited */
    private function send(string ...$words): mixed
    {
        $stream = stream_socket_client("unix://{$this->engine()->directory}/socket");
        self::assertNotFalse($stream);
        fwrite($stream, "AUTH {$this->engine()->password}\r\n" . implode(' ', $words) . "\r\n");

        return $stream;
    }
}
