<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\DataProviderExternal;
use PHPUnit\Framework\Attributes\RequiresFunction;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\Output;
use Spindle\Command\StartMethod;
use Spindle\Internal\Launcher\LauncherEvents;
use Spindle\Internal\Launcher\LauncherProcess;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

use function Amp\Future\awaitAll;

/** Changes of a process while its pool lives. */
final class LongLivedPoolTest extends TidyTestCase
{
    use OwnDirectory;

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAWorkingDirectoryThatWasMadeAnewIsEntered(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $directory = $this->path('work');
        mkdir($directory);
        $list = Command::of('ls')->withWorkingDirectory($directory);
        self::assertSame('', $pool->execute($list)->stdout());
        rmdir($directory);
        mkdir($directory);
        touch("{$directory}/new");

        self::assertSame("new\n", $pool->execute($list)->stdout());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testALinkThatWasSwitchedIsFollowedAnew(StartMethod $start): void
    {
        $pool = $this->pool($start);
        mkdir($this->path('one'));
        mkdir($this->path('two'));
        symlink($this->path('one'), $this->path('current'));
        $where = Command::of('/bin/pwd', '-P')->withWorkingDirectory($this->path('current'));
        self::assertSame($this->path('one') . "\n", $pool->execute($where)->stdout());
        symlink($this->path('two'), $this->path('next'));
        rename($this->path('next'), $this->path('current'));

        self::assertSame($this->path('two') . "\n", $pool->execute($where)->stdout());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAProgramThatAppearsEarlierInPathIsFoundWithinSeconds(StartMethod $start): void
    {
        $pool = $this->pool($start);
        mkdir($this->path('first'));
        mkdir($this->path('second'));
        $this->script('second/which-one', 'echo second');
        $which = Command::of('which-one')->withEnvironment(
            ['PATH' => "{$this->path('first')}:{$this->path('second')}:/usr/bin:/bin"],
        );
        self::assertSame("second\n", $pool->execute($which)->stdout());
        $this->script('first/which-one', 'echo first');

        Eventually::holds(static fn(): bool => $pool->execute($which)->stdout() === "first\n", 'the new one is run', 5);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAProgramThatMayNoLongerBeExecutedIsLookedForElsewhere(StartMethod $start): void
    {
        $pool = $this->pool($start);
        mkdir($this->path('first'));
        mkdir($this->path('second'));
        $this->script('first/which-one', 'echo first');
        $this->script('second/which-one', 'echo second');
        $which = Command::of('which-one')->withEnvironment(
            ['PATH' => "{$this->path('first')}:{$this->path('second')}:/usr/bin:/bin"],
        );
        self::assertSame("first\n", $pool->execute($which)->stdout());
        chmod($this->path('first/which-one'), 0o644);

        self::assertSame("second\n", $pool->execute($which)->stdout());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testSeveralFibersMayAskForTheCapacityAtOnce(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $asked = [Async::run($pool->maxConcurrency(...)), Async::run($pool->maxConcurrency(...))];

        self::assertSame($asked[0]->await(), $asked[1]->await());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAPoolThatTheCapacityWasAskedOfKeepsTheEventLoopNoLonger(StartMethod $start): void
    {
        $pool = $this->pool($start);
        self::assertGreaterThan(0, $pool->maxConcurrency());

        EventLoop::run();
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testClosingThePoolTellsAFiberThatAsksForTheCapacity(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $asked = Async::run($pool->maxConcurrency(...));
        EventLoop::queue($pool->kill(...));

        $this->expectException(LauncherException::class);
        $asked->await();
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAnImpossibleSizeLeavesARunAlone(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $run = Async::run(
            static fn(): array => iterator_to_array($pool->run([Command::shell('sleep 0.3; echo done')])),
        );
        $refused = Async::run(static function () use ($pool): string {
            try {
                $pool->resize(1_000_000_000);
            } catch (LauncherException $exception) {
                return $exception->getMessage();
            }

            return '';
        })->await();

        self::assertStringContainsString('at once need more descriptors', $refused);
        self::assertSame("done\n", $run->await()[0]->stdout());
    }

    /** @return iterable<string, array{StartMethod, Command}> */
    public static function movable(): iterable
    {
        foreach (LauncherPhp::startMethods() as $name => [$start]) {
            yield "{$name}, no input" => [$start, Command::of('true')];
            yield "{$name}, a large input" => [
                $start,
                Command::of('cat')->withInput(str_repeat('x', 70_000))->withStdout(Output::Discard),
            ];
            yield "{$name}, an input that can't be read twice" => [
                $start,
                Command::of('cat')->withInput(new \ArrayIterator(['x'])),
            ];
        }
    }

    #[DataProvider('movable')]
    public function testWorkMovesToALauncherWithSlotsToSpare(StartMethod $start, Command $quick): void
    {
        $pool = new CommandPool(8, options: new CommandPoolOptions(startMethod: $start));
        $commands = (function () use ($quick): \Generator {
            for ($i = 0; $i < 8; ++$i) {
                yield Command::of('sleep', $i % 2 === 0 ? '30' : '0');
            }
            for ($i = 0; $i < 40; ++$i) {
                yield $quick;
            }
        })();
        $done = 0;
        foreach ($pool->run($commands) as $result) {
            self::assertTrue($result->succeeded(), $result->describe());
            // Four slots are in use for 30 s. If commands could not move, those behind them would wait for them.
            if (++$done === 44) {
                break;
            }
        }

        self::assertSame(44, $done);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWorkMovesAlsoFromBehindCommandsThatWereAddedLastAndRun(StartMethod $start): void
    {
        $pool = new CommandPool(8, options: new CommandPoolOptions(startMethod: $start));
        $run = Async::run(static function () use ($pool): int {
            $commands = (static function (): \Generator {
                for ($i = 0; $i < 200; ++$i) {
                    yield Command::of('sleep', '0.02');
                }
            })();
            $done = 0;
            foreach ($pool->run($commands) as $_) {
                ++$done;
            }

            return $done;
        });
        $long = new DeferredCancellation();
        $executions = [];
        for ($i = 0; $i < 8; ++$i) {
            $seconds = $i % 2 === 0 ? '30' : '0.01';
            $executions[] = Async::run(
                static fn(): CommandResult => $pool->execute(Command::of('sleep', $seconds), $long->getCancellation()),
            );
        }

        self::assertSame(200, $run->await());
        $long->cancel();
        [$ended, $done] = awaitAll($executions);
        self::assertContainsOnlyInstancesOf(CancelledException::class, $ended);
        self::assertCount(4, $done);
    }

    #[DataProvider('movable')]
    public function testAPoolThatWasMadeSmallerThanItsLaunchersAreManyRunsOn(StartMethod $start, Command $quick): void
    {
        $pool = new CommandPool(8, options: new CommandPoolOptions(startMethod: $start));
        $pool->execute(Command::of('true'));
        $pool->resize(1);

        self::assertCount(4, iterator_to_array($pool->run([$quick, $quick, $quick, $quick])));
        $together = [
            Async::run(static fn() => $pool->execute($quick)),
            Async::run(static fn() => $pool->execute($quick)),
        ];
        self::assertSame(
            [true, true],
            array_map(static fn(Future $execution): bool => $execution->await()->succeeded(), $together),
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testChangesOfTheEnvironmentReachEachLauncher(StartMethod $start): void
    {
        $pool = new CommandPool(4, options: new CommandPoolOptions(startMethod: $start));
        $ask = array_fill(0, 16, Command::shell('echo "$SPINDLE_TEST_NEWS"'));
        $pool->execute($ask[0]);
        putenv('SPINDLE_TEST_NEWS=first');
        $pool->resize(8); // starts another launcher if there are enough CPUs
        $answers = static fn(): array => array_unique(array_map(
            static fn(CommandResult $result): string => $result->stdout(),
            iterator_to_array($pool->run($ask)),
        ));
        self::assertSame(["first\n"], array_values($answers()));
        putenv('SPINDLE_TEST_NEWS=second');
        $launcher = Processes::launchers()[0];
        posix_kill($launcher, \SIGKILL);
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($launcher), 'it is dead');

        self::assertSame(["second\n"], array_values($answers()));
        putenv('SPINDLE_TEST_NEWS');
    }

    public function testADumpOfALauncherHasNoUnsentData(): void
    {
        $events = new class implements LauncherEvents {
            public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void {}

            public function onDeath(string $how): void {}

            public function onDestroyed(): void {}

            public function onFork(): void {}
        };
        $launcher = new LauncherProcess(null, 'auto', $this->path('files'), $events);
        $launcher->useEnvironment(['TOKEN' => 'hunter2']);
        $launcher->queue('hunter3');
        $dump = print_r($launcher, true);
        $launcher->close();

        self::assertStringNotContainsString('hunter', $dump);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAnythingThatMayBeSecretStaysOutOfDumps(StartMethod $start): void
    {
        putenv('SPINDLE_TEST_PASSWORD=hunter2');
        $pool = $this->pool($start);
        $command = Command::of('cat')->withEnvironment(['TOKEN' => 'hunter3'])->withInput('hunter4');
        $dumps = '';
        foreach ($pool->run([$command, $command]) as $result) {
            $dumps .= print_r($pool, true) . print_r($command, true);
        }
        putenv('SPINDLE_TEST_PASSWORD');

        self::assertStringContainsString('concurrency', $dumps);
        self::assertStringNotContainsString('hunter', $dumps);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    #[RequiresFunction('pcntl_fork')]
    public function testAForkOfItsProcessIsRefused(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $pool->execute(Command::of('true'));
        $answer = $this->path('answer');
        $child = pcntl_fork();
        if ($child === 0) {
            try {
                $pool->execute(Command::of('true'));
            } catch (LauncherException $exception) {
                file_put_contents($answer, $exception->getMessage());
            }
            posix_kill((int) getmypid(), \SIGKILL); // so that the fork does not run the remaining tests
        }
        Eventually::holds(static fn(): bool => !Processes::isAlive($child), 'the fork has ended');
        pcntl_waitpid($child, $status);

        self::assertStringContainsString('parent process of this fork', (string) @file_get_contents($answer));
        self::assertTrue($pool->execute(Command::of('true'))->succeeded(), 'the pool still serves its own process');
    }

    private function pool(StartMethod $start): CommandPool
    {
        return new CommandPool(2, options: new CommandPoolOptions(startMethod: $start));
    }
}
