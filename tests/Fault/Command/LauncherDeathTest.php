<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\DataProviderExternal;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\Command\StartMethod;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Drained;
use Spindle\Tests\Eventually;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

final class LauncherDeathTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testItFailsTheRunAndNamesCommandsWithoutAnOutcome(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $aIsOver = static fn(): bool => $pool->statistics()['finished_total'] === 1;
        self::killLauncherOnce(static fn(): bool => $aIsOver() && \count(self::running('sleep 20')) === 2);
        $run = new Drained($pool->run(
            ['a' => Command::of('true'), 'b' => Command::of('sleep', '20'), 'c' => Command::of('sleep', '20')],
        ));

        self::assertSame(['a'], $run->keys);
        self::assertInstanceOf(LauncherException::class, $run->thrown);
        self::assertSame(['b', 'c'], $run->thrown->unfinished);
        self::assertStringContainsString('signal 9', $run->thrown->getMessage());
        self::assertStringContainsString('2 pending commands', $run->thrown->getMessage());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testItFailsAnExecution(StartMethod $start): void
    {
        self::killLauncherOnceItRuns(1, 'sleep 20');
        $this->expectException(LauncherException::class);
        $this->pool($start)->execute(Command::of('sleep', '20'));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testInOrderTheResultsThatWereThereComeFirst(StartMethod $start): void
    {
        $input = [
            'a' => Command::of('true'),
            'slow' => Command::of('sleep', '20'),
            'b' => Command::of('true'),
            'c' => Command::of('true'),
        ];
        $pool = $this->pool($start, 2);
        self::killLauncherOnce(static fn(): bool => $pool->statistics()['finished_total'] === 3);
        $run = new Drained($pool->runInOrder($input));

        self::assertSame(['a', 'b', 'c'], $run->keys);
        self::assertInstanceOf(LauncherException::class, $run->thrown);
        self::assertSame(['slow'], $run->thrown->unfinished);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testInOrderResultsStayInOrderWhenOneOfSeveralLaunchersDies(StartMethod $start): void
    {
        $commands = [];
        for ($i = 0; $i < 16; ++$i) {
            $commands[] = Command::of('sleep', (string) (20 - $i));
        }
        self::killLauncherOnceItRuns(8, 'sleep ', self::killOneLauncher(...));
        $run = new Drained($this->pool($start, 8)->runInOrder($commands));
        $keys = $run->keys;
        sort($keys);

        self::assertInstanceOf(LauncherException::class, $run->thrown);
        self::assertSame($keys, $run->keys);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testANewLauncherRunsWaitingCommandsOfTheOthers(StartMethod $start): void
    {
        $pool = $this->pool($start, 8);
        for ($i = 0; $i < 40; ++$i) {
            Async::run(static fn(): CommandResult => $pool->execute(Command::of('sleep', '20')))->ignore();
        }
        Eventually::holds(static fn(): bool => \count(self::running('sleep 20')) === 8, 'all slots are in use');
        if (\count(Processes::launchers()) < 2) {
            self::markTestSkipped('needs two CPUs, so that the pool has two launchers');
        }
        self::killOneLauncher();
        $haveFailed = static fn(): bool => $pool->statistics()['waiting'] < 30;
        $isFull = static fn(): bool => $haveFailed() && \count(self::running('sleep 20')) === 8;
        Eventually::holds($isFull, 'all slots are in use again');
        $pool->kill();

        self::assertSame([], Processes::launchers());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testACommandThatKillsItsLauncherIsGivenUpWhileOthersFinish(StartMethod $start): void
    {
        $deadly = Command::shell('echo x >> ' . $this->path('starts') . '; kill -9 $PPID; sleep 10');
        $commands = static function () use ($deadly): \Generator {
            for ($i = 0; ; ++$i) {
                yield $i => $i === 10 ? $deadly : Command::of('sleep', '0.01');
            }
        };
        $run = new Drained($this->pool($start, 8, rerunAfterCrash: true)->run($commands()));

        self::assertInstanceOf(LauncherException::class, $run->thrown);
        self::assertContains(10, $run->thrown->unfinished);
        self::assertLessThanOrEqual(4, \count(Text::lines($this->path('starts'))));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testEachRunIsToldOfItsOwnCommandsAlone(StartMethod $start): void
    {
        $pool = $this->pool($start, 4);
        $run = static fn(string $key): \Closure
            => static fn(): array => iterator_to_array($pool->run([$key => Command::of('sleep', '20')]));
        [$one, $other] = [Async::run($run('one')), Async::run($run('other'))];
        Eventually::holds(static fn(): bool => \count(self::running('sleep 20')) === 2, 'both run');
        self::killLauncher();
        $unfinished = [];
        foreach ([$one, $other] as $future) {
            try {
                $future->await();
            } catch (LauncherException $exception) {
                $unfinished[] = $exception->unfinished;
            }
        }

        self::assertSame([['one'], ['other']], $unfinished);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testNoProcessThatItStartedIsLeftRunning(StartMethod $start): void
    {
        $pids = $this->path('pids');
        $line = "sleep 100 & echo \$! >> {$pids}; setsid sh -c 'echo \$\$ >> {$pids}; trap \"\" TERM;"
            . " sleep 100' & echo \$\$ >> {$pids}; wait";
        $run = Async::run(fn() => iterator_to_array($this->pool($start)->run(array_fill(0, 2, Command::shell($line)))));
        Eventually::holds(static fn(): bool => \count(Text::lines($pids)) === 6, 'all have started');
        self::killLauncher();
        self::thrown(LauncherException::class, static fn() => $run->await());
        $alive = array_filter(Text::numbersIn($pids), Processes::isAlive(...));
        self::assertSame([], $alive);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testNoProcessIsLeftRunningWhenThePoolEndsBeforeItHasReadOfTheDeath(StartMethod $start): void
    {
        $ends = [
            'closed' => static fn(CommandPool $pool) => $pool->close(),
            'killed' => static fn(CommandPool $pool) => $pool->kill(),
            'destroyed' => static fn(CommandPool $pool): bool => true,
        ];
        foreach ($ends as $how => $end) {
            $pool = $this->pool($start);
            $started = $pool->execute(Command::shell('setsid sleep 100 > /dev/null & echo $!'));
            $background = (int) $started->stdout();
            self::assertTrue(Processes::isAlive($background));
            self::killLauncher();
            $end($pool);
            unset($pool);

            gc_collect_cycles();
            Eventually::holds(static fn(): bool => !Processes::isAlive($background), "{$how}: the process has ended");
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testNoProcessIsLeftRunningWhenALauncherDiesWhileItEndsItsProcesses(StartMethod $start): void
    {
        $pids = $this->path('pids');
        $terminated = $this->path('terminated');
        $killer = "trap ': > {$terminated}; kill -9 \$PPID' TERM; echo \$\$ >> {$pids}; while :; do sleep 0.05; done";
        $pool = new CommandPool(2, 0, new CommandPoolOptions(gracePeriod: 20, startMethod: $start));
        $run = Async::run(static fn(): CommandResult => $pool->execute(Command::shell($killer)));
        $run->ignore();
        Eventually::holds(static fn(): bool => \count(Text::lines($pids)) === 1, 'it has started');
        $pool->kill();

        self::assertFileExists($terminated);
        self::assertSame([], array_filter(Text::numbersIn($pids), Processes::isAlive(...)));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAtAnyMomentEachCommandEitherHasItsResultOrIsNamed(StartMethod $start): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.5) as $_) {
            // Pools with one launcher, and with several if there are enough CPUs.
            $this->killAtARandomMoment($start, 4 * mt_rand(1, 3), mt_rand(0, 60) / 1000);
        }
    }

    private function killAtARandomMoment(StartMethod $start, int $concurrency, float $moment): void
    {
        $pulled = $seen = [];
        $killed = new DeferredFuture();
        $input = static function () use (&$pulled, $killed): \Generator {
            for ($i = 0; $i < 2000 && !$killed->isComplete(); ++$i) {
                $pulled[] = $i;
                yield $i => Command::of('echo', (string) $i);
            }
        };
        EventLoop::delay($moment, static function () use ($killed): void {
            Eventually::holds(static fn(): bool => Processes::launchers() !== [], 'there is a launcher');
            self::killOneLauncher();
            $killed->complete();
        });
        try {
            foreach ($this->pool($start, $concurrency)->run($input()) as $key => $result) {
                self::assertSame($result->cancelled ? '' : "{$key}\n", $result->cancelled ? '' : $result->stdout());
                $seen[] = $key;
            }
            sort($seen); // the launcher died before it had started a command, and was replaced
            self::assertSame($pulled, $seen, "A launcher was killed after {$moment} s");
        } catch (LauncherException $exception) {
            $accounted = [...$seen, ...$exception->unfinished];
            sort($accounted);
            self::assertSame($pulled, $accounted);
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWithRedispatchEveryCommandHasExactlyOneResult(StartMethod $start): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.5) as $_) {
            $input = static function (): \Generator {
                for ($i = 0; $i < 150; ++$i) {
                    yield $i => Command::of('echo', (string) $i);
                }
            };
            $seen = $killers = [];
            foreach ($this->pool($start, 4 * mt_rand(1, 3), rerunAfterCrash: true)->run($input()) as $key => $result) {
                self::assertSame("{$key}\n", $result->stdout(), $result->describe());
                $seen[] = $key;
                if (\count($seen) % 40 === 1) {
                    $killers[] = EventLoop::delay(mt_rand(0, 20) / 1000, self::killOneLauncher(...));
                }
            }
            array_map(EventLoop::cancel(...), $killers);
            sort($seen);
            self::assertSame(range(0, 149), $seen);
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWithRedispatchAnExecutionAndItsInputAreRepeated(StartMethod $start): void
    {
        $pool = $this->pool($start, rerunAfterCrash: true);
        $ran = $this->path('ran');
        self::killLauncherOnce(static fn(): bool => is_file($ran));
        $input = str_repeat('x', 500_000);
        $line = "cat; if test -e {$ran}; then exit; fi; touch {$ran}; sleep 20";
        $result = $pool->execute(Command::shell($line)->withInput($input));

        self::assertTrue($result->stdout() === $input);
        self::assertSame(1, $result->attempts);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWithRedispatchAnInputThatCannotBeRepeatedFailsItsCommand(StartMethod $start): void
    {
        $read = $this->path('read');
        self::killLauncherOnce(static fn(): bool => is_file($read));
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessageMatches("/input can't be read twice/");
        $this->pool($start, rerunAfterCrash: true)->execute(
            Command::shell("cat; touch {$read}; sleep 20")->withInput(['a']),
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testACommandWhoseOutputIsStillBeingDeliveredHasItsOutcome(StartMethod $start): void
    {
        foreach ([false, true] as $rerunAfterCrash) {
            $received = '';
            $pool = $this->pool($start, rerunAfterCrash: $rerunAfterCrash);
            $result = $pool->execute(
                Command::of('echo', 'once')->withStdout(static function (string $bytes) use (&$received, $pool): void {
                    Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 0, 'the command is over');
                    self::killLauncher();
                    Eventually::holds(static fn(): bool => Processes::launchers() === [], 'the pool knows of it');
                    $received .= $bytes;
                }),
            );

            self::assertTrue($result->succeeded());
            self::assertSame("once\n", $received);
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWithRedispatchACommandBetweenTwoAttemptsIsTriedAgain(StartMethod $start): void
    {
        $pool = $this->pool($start, rerunAfterCrash: true, retries: new RetryPolicy(1, delay: 0.2, jitter: 0.0));
        self::killLauncherOnce(static fn(): bool => $pool->statistics()['retried_total'] === 1);
        $result = $pool->execute(Command::of('false'));

        self::assertSame([1, 2], [$result->exitCode, $result->attempts]);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testACommandThatIsCancelledBeforeItsRedispatchWasStarted(StartMethod $start): void
    {
        $pool = $this->pool($start, 1, rerunAfterCrash: true);
        $line = "echo x >> {$this->path('starts')}; sleep 20";
        $run = Async::run(static fn(): array => iterator_to_array($pool->run([Command::shell($line)])));
        Eventually::holds(fn(): bool => is_file($this->path('starts')), 'it runs');
        [$launcher] = Processes::launchers();
        $pool->pause();
        self::killLauncher();
        Eventually::holds(
            static fn(): bool => !\in_array($launcher, Processes::launchers(), true) && Processes::launchers() !== [],
            'the launcher was replaced',
        );
        $pool->cancelAll();
        [$result] = $run->await();

        self::assertSame(['x'], Text::lines($this->path('starts')));
        self::assertSame([1, true], [$result->attempts, $result->cancelled]);
        self::assertStringNotContainsString('before it was started', (string) $result->error);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testOneThatDiesBeforeItHasStartedAnythingFailsNothing(StartMethod $start): void
    {
        foreach ([1, 8] as $concurrency) {
            $starts = $this->path("starts-{$concurrency}");
            $commands = array_fill(0, 200, Command::shell("echo x >> {$starts}"));
            $results = iterator_to_array($this->poolWhoseFirstLauncherDies($start, $concurrency)->run($commands));

            self::assertCount(
                200,
                array_filter($results, static fn(CommandResult $result): bool => $result->succeeded()),
            );
            self::assertCount(200, Text::lines($starts));
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testTheCapacityIsThatOfTheLauncherThatReplacesADeadOne(StartMethod $start): void
    {
        self::assertGreaterThan(0, $this->poolWhoseFirstLauncherDies($start, 4)->maxConcurrency());
    }

    public function testALauncherThatAlwaysDiesBeforeItIsReadyIsGivenUpSoon(): void
    {
        $php = $this->script('php', "echo x >> {$this->path('starts')}; exit 3");
        $exception = self::thrown(
            LauncherException::class,
            static fn() => (new CommandPool(1, 0, new CommandPoolOptions(php: $php)))->execute(Command::of('true')),
        );
        self::assertStringContainsString('exit code 3', $exception->getMessage());

        self::assertCount(4, Text::lines($this->path('starts')));
    }

    public function testWithRedispatchALauncherThatDiesAgainAndAgainIsGivenUp(): void
    {
        $options = new CommandPoolOptions(rerunAfterCrash: true, php: $this->script('php', 'exit 3'));
        $pool = new CommandPool(1, 0, $options);
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessageMatches('/exit code 3/');
        $pool->execute(Command::of('true'));
    }

    public function testWithRedispatchALauncherThatCannotBeStartedAgainFailsTheRun(): void
    {
        $php = LauncherPhp::wrapper($this->path(), '');
        $pool = new CommandPool(2, 0, new CommandPoolOptions(rerunAfterCrash: true, php: $php));
        self::killLauncherOnceItRuns(2, 'sleep 20', static function () use ($php): void {
            unlink($php);
            self::killLauncher();
        });
        $this->expectException(LauncherException::class);
        iterator_to_array($pool->run(['a' => Command::of('sleep', '20'), 'b' => Command::of('sleep', '20')]));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testThePoolStartsAnotherOneForItsNextUse(StartMethod $start): void
    {
        $pool = $this->pool($start);
        self::killLauncherOnceItRuns(1, 'sleep 20');
        self::thrown(LauncherException::class, static fn() => $pool->execute(Command::of('sleep', '20')));
        self::assertSame("again\n", $pool->execute(Command::of('echo', 'again'))->stdout());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testOneThatDiesWhileNothingRunsFailsNothing(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $pool->execute(Command::of('true'));
        $launchers = Processes::launchers();
        self::killLauncher();
        Eventually::holdsByItself(
            static fn(): bool => array_filter($launchers, Processes::isAlive(...)) === [],
            'it is dead',
        );

        self::assertSame("again\n", $pool->execute(Command::of('echo', 'again'))->stdout());
    }

    public function testAProgramThatDoesNotWriteFramesIsNoLauncher(): void
    {
        $pool = new CommandPool(
            1,
            0,
            new CommandPoolOptions(php: LauncherPhp::wrapper($this->path(), 'echo "PHP Warning:  something to read"')),
        );
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessageMatches('/something to read/');
        $pool->execute(Command::of('true'));
    }

    public function testAProgramThatExitsImmediatelyIsNoLauncher(): void
    {
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessageMatches('/exit code 0/');
        (new CommandPool(1, 0, new CommandPoolOptions(php: '/bin/true')))->execute(Command::of('true'));
    }

    public function testAPhpThatIsNotThereIsRefused(): void
    {
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessageMatches("~'/no/such/php' is not an executable file~");
        (new CommandPool(1, 0, new CommandPoolOptions(php: '/no/such/php')))->execute(Command::of('true'));
    }

    public function testPosixSpawnIsRefusedWithoutFfi(): void
    {
        $pool = new CommandPool(
            1,
            0,
            new CommandPoolOptions(
                startMethod: StartMethod::PosixSpawn,
                php: LauncherPhp::withoutExtensions($this->path()),
            ),
        );
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessageMatches('/ext-ffi/');
        $pool->execute(Command::of('true'));
    }

    private function pool(
        StartMethod $start,
        int $concurrency = 4,
        bool $rerunAfterCrash = false,
        int|RetryPolicy $retries = 0,
    ): CommandPool {
        $options = new CommandPoolOptions(rerunAfterCrash: $rerunAfterCrash, startMethod: $start);

        return new CommandPool($concurrency, $retries, $options);
    }

    private function poolWhoseFirstLauncherDies(StartMethod $start, int $concurrency): CommandPool
    {
        $once = escapeshellarg($this->path("once-{$concurrency}"));
        $php = LauncherPhp::wrapper($this->path(), "mkdir {$once} 2> /dev/null && kill -9 \$\$");

        return new CommandPool($concurrency, 0, new CommandPoolOptions(startMethod: $start, php: $php));
    }

    /**
     * @param string               $program beginning of the command lines
     * @param callable(): mixed|null $kill    null to kill all launchers
     */
    private static function killLauncherOnceItRuns(int $count, string $program, ?callable $kill = null): void
    {
        self::killLauncherOnce(static fn(): bool => \count(self::running($program)) === $count, $kill);
    }

    /**
     * @param callable(): bool     $condition
     * @param callable(): mixed|null $kill
     */
    private static function killLauncherOnce(callable $condition, ?callable $kill = null): void
    {
        EventLoop::queue(static function () use ($condition, $kill): void {
            Eventually::holds($condition, 'the launcher is to be killed');
            ($kill ?? self::killLauncher(...))();
        });
    }

    /** @return array<int, string> commands of all launchers whose lines begin with the program */
    private static function running(string $program): array
    {
        $commands = [];
        foreach (Processes::launchers() as $launcher) {
            $commands += Processes::childrenOf($launcher);
        }

        return array_filter($commands, static fn(string $line): bool => str_starts_with($line, $program));
    }

    private static function killLauncher(): void
    {
        foreach (Processes::launchers() as $launcher) {
            posix_kill($launcher, \SIGKILL);
        }
    }

    private static function killOneLauncher(): void
    {
        $launchers = Processes::launchers();
        if ($launchers !== []) {
            posix_kill($launchers[mt_rand(0, \count($launchers) - 1)], \SIGKILL);
        }
    }
}
