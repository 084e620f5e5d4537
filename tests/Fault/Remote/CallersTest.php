<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\NullCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Internal\CannotWaitException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Remote\Testing\TemporaryRedisOptions;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

use function Amp\delay;

/** Callers that die or are cut off. */
final class CallersTest extends TidyTestCase
{
    use OwnDirectory;
    use RunsAgents;

    /** Bytes of memory for each outcome that a process waits for. */
    private const BYTES = 4096;

    protected function deadline(): int
    {
        return 120 + intdiv(Scale::of(10_000), 50);
    }

    public function testForksOfAProcessHaveTheirOwnAnswersAndLeaveItsOwn(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $queue = self::newQueue();
        $this->agent($queue);

        self::assertSame([0, 0, 0, 0, 20], Host::call(Callers::class . '::fork', [Redis::shared()->url(), $queue]));
        $statistics = (new RedisBroker(Redis::shared()->url()))->statistics($queue);
        self::assertSame([101, 101], [$statistics['submitted_total'], $statistics['done_total']]);
    }

    #[TestWith([false])]
    #[TestWith([true])]
    #[RequiresPhpExtension('ffi')]
    #[RequiresPhpExtension('pcntl')]
    public function testTheEndOfAForkDoesNotEndATlsConnectionOfItsParent(bool $isByAnError): void
    {
        $authority = new Certificates($this->path());
        [$certificate, $key] = $authority->forServer('127.0.0.1');
        $redis = TemporaryRedis::start([], new TemporaryRedisOptions(certificate: $certificate, key: $key));
        $count = static function (?bool $isByAnError) use ($redis, $authority): int {
            $arguments = [$redis->tlsUrl(), $authority->authority, $isByAnError];
            $before = self::connectionsOf($redis);
            self::assertSame([true, true], Host::call(Callers::class . '::forkWithTls', $arguments));

            return self::connectionsOf($redis) - $before;
        };

        self::assertSame($count(null), $count($isByAnError)); // a caller replaces a connection that has ended
        $redis->stop();
    }

    private static function connectionsOf(TemporaryRedis $redis): int
    {
        $statistics = $redis->command('INFO', 'stats');
        self::assertIsString($statistics);
        self::assertSame(1, preg_match('/^total_connections_received:(\d+)/m', $statistics, $match));

        return (int) $match[1];
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testAGeneratorWhoseReaderIsKilledKeepsItsWorkerForTenSecondsMore(bool $hasRead): void
    {
        $queue = self::newQueue();
        $hasRead ? $this->agent($queue, 1) : null;
        $caller = Host::start(
            Callers::class . '::readSlowly',
            [Redis::shared()->url(), $queue, $file = $this->path('read')],
        );
        $submitted = static fn(): int => (new RedisBroker(Redis::shared()->url()))->statistics($queue)['waiting'];
        Eventually::holds(static fn(): bool => $hasRead ? is_file($file) : $submitted() === 1, 'it reads', 20.0);
        self::kill($caller);
        $hasRead ? null : $this->agent($queue, 1);
        $executor = new RemoteExecutor(new RedisBroker(Redis::shared()->url()), $queue, self::keys());

        self::assertSame(7, $executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(40.0)));
        self::assertSame(1, (new RedisBroker(Redis::shared()->url()))->statistics($queue)['cancelled_total']);
    }

    public function testCallersThatAreKilledAreReplacedAndHaveEveryOutcome(): void
    {
        $queue = self::newQueue();
        $tasks = Scale::of(10_000);
        $log = $this->path('log');
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $broker = new RedisBroker(Redis::shared()->url());
        for ($i = 0; $i < 2 + Scale::of(10); ++$i) {
            $moment = $random->getInt(1, $tasks);
            $caller = Host::start(Callers::class . '::dispatch', [Redis::shared()->url(), $queue, $tasks, $log]);
            Eventually::holds(
                static fn(): bool => $broker->statistics($queue)['submitted_total'] >= $moment || !$caller->isRunning(),
                'it submits',
                20.0,
            );
            self::kill($caller);
            if ($i === 1) {
                $this->agent($queue);
            }
        }
        self::assertSame(
            $tasks,
            Host::call(Callers::class . '::dispatch', [Redis::shared()->url(), $queue, $tasks, $log]),
        );
        for ($i = 0; $i < 2 + Scale::of(10); ++$i) {
            $caller = Host::start(Callers::class . '::attach', [Redis::shared()->url(), $queue, $tasks]);
            delay($random->getInt(50, 400) / 1000);
            self::kill($caller);
        }

        self::assertSame(
            intdiv($tasks * ($tasks + 1), 2),
            Host::call(Callers::class . '::attach', [Redis::shared()->url(), $queue, $tasks]),
        );
        self::assertCount($tasks, LoggedTasks::ended($log));
        self::assertSame($tasks, array_sum(LoggedTasks::ended($log)), 'each task ran once');
        self::assertSame($tasks, $broker->statistics($queue)['submitted_total']);
    }

    public function testManyWaitingCallersSendNothingAndNeedLittleMemory(): void
    {
        $queue = self::newQueue();
        $tasks = Scale::of(10_000);
        $log = $this->path('log');
        $file = $this->path('waits');
        Host::call(Callers::class . '::dispatch', [Redis::shared()->url(), $queue, $tasks, $log]);
        $caller = Host::start(Callers::class . '::wait', [Redis::shared()->url(), $queue, $tasks, $file]);
        Eventually::holds(static fn(): bool => is_file($file), 'it waits', 30.0);
        Eventually::holds(
            static fn(): bool => Redis::shared()->command('HLEN', "spindle:{{$queue}}:watchers") === $tasks,
            'it was told what there is',
            30.0,
        );
        $before = self::calls();
        delay(2.0); // The test asserts a rate: 10,000 waiting callers send almost no requests in this time.
        $asked = self::calls() - $before;
        $this->agent($queue);
        while ($caller->isRunning()) {
            delay(0.02);
        }
        self::assertSame(0, $caller->getExitCode(), $caller->getOutput() . $caller->getErrorOutput());
        preg_match('/result: (.*)$/', $caller->getOutput(), $match);
        /** @var array{int, int, int} $result */
        $result = json_decode($match[1] ?? '', true, flags: \JSON_THROW_ON_ERROR);
        [$bytes, $most, $sum] = $result;
        fprintf(\STDERR, "%d wait: %d bytes each, %d at most, %d questions in 2 s\n", $tasks, $bytes, $most, $asked);

        self::assertSame(intdiv($tasks * ($tasks + 1), 2), $sum);
        self::assertLessThan(10, $asked);
        self::assertLessThan(self::BYTES, $bytes);
        self::assertLessThan(2 * self::BYTES, $most);
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testResultsOfALoopThatTakesThemLateNeedLittleMemory(bool $inOrder): void
    {
        $queue = self::newQueue();
        $this->agent($queue);
        $taken = Host::call(Callers::class . '::takeLate', [Redis::shared()->url(), $queue, 600, $inOrder]);
        self::assertIsArray($taken);
        if (!$inOrder) {
            sort($taken);
        }

        self::assertSame(range(1, 600), $taken);
    }

    public function testWithoutAFreeDescriptorTheEngineIsNotAvailable(): void
    {
        $failure = Host::call(
            Callers::class . '::withoutDescriptors',
            [Redis::shared()->url(), self::newQueue()],
            ['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'],
        );

        self::assertIsString($failure);
        self::assertStringStartsWith(BrokerUnavailableException::class . ': ', $failure);
        self::assertStringContainsString('limit of open files', $failure);
    }

    public function testWhereNothingCanWaitItFailsWithTheReasonAndHarmsNothingElse(): void
    {
        if (!\function_exists('pcntl_signal')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $queue = self::newQueue();
        $this->agent($queue);
        $executor = new RemoteExecutor(new RedisBroker(Redis::shared()->url()), $queue, self::keys());
        $items = $executor->submit(static function (): \Generator {
            yield 1;
            delay(0.2);
            yield 2;
        })->await();
        self::assertSame(1, $items->current());
        $waits = [
            static fn(): string => $executor->dispatch(getmypid(...), 'refused'),
            static fn(): string => $executor->dispatch(getmypid(...), 'refused', cancellation: new NullCancellation()),
            static fn(): mixed => $executor->submit(getmypid(...)),
            static fn(): mixed => $executor->status('order-7'),
            static fn(): array => iterator_to_array($executor->map([-5], abs(...))),
            static fn(): mixed
                => (new RemoteExecutor(
                    new RedisBroker(Redis::shared()->url()),
                    $queue,
                    self::keys(),
                ))->status('order-7'),
        ];
        $thrown = [];
        pcntl_signal(\SIGUSR2, static function () use ($waits, &$thrown): void {
            foreach ($waits as $wait) {
                try {
                    $wait();
                } catch (CannotWaitException $refused) {
                    $thrown[] = $refused::class;
                }
            }
        });
        posix_kill((int) getmypid(), \SIGUSR2);
        pcntl_signal_dispatch();
        pcntl_signal(\SIGUSR2, \SIG_DFL);

        self::assertSame(array_fill(0, \count($waits), CannotWaitException::class), $thrown);
        self::assertNull($executor->status('refused'));
        $items->next();
        self::assertSame(2, $items->current());
        $id = $executor->dispatch(getmypid(...), 'order-7');
        self::assertNotNull($executor->status($id));
        self::assertSame(5, $executor->submit(static fn(): int => 5)->await());
    }

    public function testAnOutcomeThatCameDuringAnOutageIsDeliveredAtOnceAfterIt(): void
    {
        $queue = self::newQueue();
        $redis = Redis::shared();
        $this->agent($queue); // before the proxy opens connections, which the agent would inherit
        $proxy = new FaultyProxy("tcp://127.0.0.1:{$redis->port}");
        $executor = new RemoteExecutor(
            new RedisBroker("redis://:{$redis->password}@127.0.0.1:{$proxy->port}"),
            $queue,
            self::keys(),
        );
        $file = $this->path('open');
        $log = $this->path('log');
        $future = $executor->submit(static fn(): int => LoggedTasks::runUntil($log, 7, $file));
        Eventually::holds(static fn(): bool => LoggedTasks::started($log) !== [], 'it runs');
        $proxy->refuse();
        $proxy->close();
        touch($file);
        $broker = new RedisBroker($redis->url());
        Eventually::holds(static fn(): bool => $broker->statistics($queue)['done_total'] === 1, 'it is done');
        $proxy->resume();
        Eventually::holds(static fn(): bool => $future->isComplete(), 'it is told', 10.0);

        self::assertSame(7, $future->await());
        $proxy->stop();
    }

    private static function kill(Process $process): void
    {
        if ($process->isRunning()) {
            $process->signal(\SIGKILL);
        }
        while ($process->isRunning()) {
            delay(0.005);
        }
    }

    /** Returns the number of requests to the engine so far, without those of this test. */
    private static function calls(): int
    {
        $lines = Redis::shared()->command('INFO', 'commandstats');
        preg_match_all('/^cmdstat_(\S+?):calls=(\d+)/m', \is_string($lines) ? $lines : '', $matches, \PREG_SET_ORDER);
        $calls = 0;
        foreach ($matches as [, $command, $count]) {
            $calls += \in_array($command, ['info', 'auth'], true) ? 0 : (int) $count;
        }

        return $calls;
    }
}
