<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\DataProviderExternal;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\StartMethod;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Memory does not grow with the number of commands, and an idle pool uses no CPU time. */
final class ResourceUseTest extends TidyTestCase
{
    protected function deadline(): int
    {
        return Scale::isFull() ? 330 : 120;
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testMemoryIsTheSameAfterManyCommandsAsAfterAFew(StartMethod $start): void
    {
        // Only the launcher differs between the start methods, so the others need fewer commands.
        $isUsual = $start === StartMethod::PosixSpawn || !LauncherPhp::hasFfi();
        $share = $isUsual || Scale::isFull() ? 1.0 : 0.5;
        $growth = Host::call(
            self::class . '::runMany',
            [$start->value, (int) ($share * Scale::of(30_000))],
            timeout: $this->deadline(),
        );
        self::assertIsArray($growth);

        self::assertLessThan(200_000, $growth[0], 'bytes, of this process');
        self::assertLessThan($share * 1000, $growth[1], 'kilobytes, of the launcher');
    }

    /** @return array{int, int} */
    public static function runMany(string $start, int $count): array
    {
        $commands = static function () use ($count): \Generator {
            for ($i = 0; $i < $count; ++$i) {
                yield "key {$i}" => Command::of('true')->withEnvironment(['N' => (string) $i])->withInput("input {$i}");
            }
        };
        $own = $launcher = 0;
        $taken = 0;
        foreach ((new CommandPool(
            8,
            0,
            new CommandPoolOptions(startMethod: StartMethod::from($start)),
        ))->run($commands()) as $_) {
            if (++$taken === intdiv($count, 3)) {
                $own = memory_get_usage();
                $launcher = self::residentMemory(Processes::launchers()[0]);
            }
            if ($taken === $count - 100) {
                return [memory_get_usage() - $own, self::residentMemory(Processes::launchers()[0]) - $launcher];
            }
        }

        return [\PHP_INT_MAX, \PHP_INT_MAX];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testOutputOfAnyLengthPassesThroughLittleMemory(StartMethod $start): void
    {
        $megabytes = Scale::isFull() ? 3000 : 100;
        $answer = Host::call(self::class . '::streamMuch', [$start->value, $megabytes]);
        self::assertIsArray($answer);
        [$sum, $expected, $own, $launcher] = $answer;

        self::assertSame($expected, $sum);
        self::assertLessThan(16 << 20, $own, 'bytes more, of this process');
        self::assertLessThan(16 << 10, $launcher, 'kilobytes more, of the launcher');
    }

    /** @return array{string, string, int, int} */
    public static function streamMuch(string $start, int $megabytes): array
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->execute(Command::of('true'));
        $before = memory_get_usage();
        $pid = Processes::launchers()[0];
        $launcher = self::residentMemory($pid);
        memory_reset_peak_usage();
        $most = 0;
        $hash = hash_init('xxh128');
        $line = 'i=0; while test $i -lt ' . $megabytes . '; do cat; i=$((i+1)); done';
        $block = tempnam(sys_get_temp_dir(), 'test');
        \assert($block !== false);
        file_put_contents($block, random_bytes(1 << 20));
        $pool->execute(
            Command::shell(str_replace('cat;', "cat {$block};", $line))->withStdout(
                static function (string $bytes) use ($hash, &$most, $pid): void {
                    hash_update($hash, $bytes);
                    $most = max($most, self::residentMemory($pid));
                },
            ),
        );
        $expected = hash_init('xxh128');
        for ($i = 0; $i < $megabytes; ++$i) {
            hash_update_file($expected, $block);
        }
        unlink($block);

        return [hash_final($hash), hash_final($expected), memory_get_peak_usage() - $before, $most - $launcher];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAnIdlePoolUsesNoTime(StartMethod $start): void
    {
        $pool = new CommandPool(2, 0, new CommandPoolOptions(startMethod: $start));
        $pool->execute(Command::of('true'));
        $launcher = Processes::launchers()[0];
        $used = \PHP_INT_MAX;
        // In the first second, the launcher may still be cleaning up after the command.
        for ($second = 0; $second < 3 && $used > 1; ++$second) {
            $before = Processes::processorTime($launcher);
            delay(1.0); // the claim is relative to this second: 1 hundredth, the smallest measurable time, is 1 % of it
            $used = Processes::processorTime($launcher) - $before;
        }

        self::assertLessThanOrEqual(1, $used, 'hundredths of a second');
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAPoolWhoseCommandsSleepUsesNoTime(StartMethod $start): void
    {
        $pool = new CommandPool(20, 0, new CommandPoolOptions(startMethod: $start));
        $end = new DeferredCancellation();
        $command = Command::of('sleep', '30')->withTimeout(10)->withIdleTimeout(5);
        $running = Async::run(static function () use ($pool, $command, $end): void {
            foreach ($pool->run(array_fill(0, 20, $command), $end->getCancellation()) as $_) {
                continue;
            }
        });
        Eventually::holds(static fn(): bool => self::sleepers() === 20, 'all commands sleep');
        $before = self::launchersTime();
        delay(1.0); // the claim is relative to this second: 2 hundredths are 2 % of it
        $used = self::launchersTime() - $before;
        self::assertSame(20, self::sleepers(), 'none has ended');
        $end->cancel();
        try {
            $running->await();
        } catch (CancelledException) {
        }

        self::assertLessThanOrEqual(2, $used, 'hundredths of a second');
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAPoolThatWaitsForAStubbornCommandToEndDoesNotSpin(StartMethod $start): void
    {
        $used = Host::call(self::class . '::closeStubborn', [$start->value]);

        self::assertIsInt($used);
        self::assertLessThanOrEqual(25, $used, 'hundredths of a second in half a second');
    }

    /** Returns the CPU time of a launcher that ends a command which ignores TERM. */
    public static function closeStubborn(string $start): int
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(gracePeriod: 0.5, startMethod: StartMethod::from($start)));
        $ignores = false;
        $stubborn = Command::shell('trap "" TERM; echo; while :; do sleep 10; done')
            ->withStdout(static function () use (&$ignores): void {
                $ignores = true;
            });
        foreach ($pool->run([Command::of('true'), $stubborn]) as $_) {
            Eventually::holds(static function () use (&$ignores): bool {
                return $ignores;
            }, 'it ignores TERM');
            $before = self::childrensTime();
            $pool->kill();

            return self::childrensTime() - $before;
        }

        return \PHP_INT_MAX;
    }

    /** @param \Closure(CommandPool): void $run runs commands, and keeps nothing of them */
    #[DataProvider('endedCommands')]
    public function testInputAndOutputAreFreedWithoutTheGarbageCollector(\Closure $run): void
    {
        $pool = new CommandPool(3);
        gc_disable();
        try {
            $run($pool);
            $before = self::usedMemory();
            $run($pool);
            $run($pool);
            $growth = self::usedMemory() - $before;
        } finally {
            gc_enable();
        }

        self::assertLessThan(400_000, $growth, 'bytes');
    }

    /** @return iterable<string, array{\Closure(CommandPool): void}> with about 1 MB of input or output */
    public static function endedCommands(): iterable
    {
        $head = Command::of('head', '-c', '900000');
        $both = Command::shell('echo; head -c 900000 /dev/zero >&2');
        yield 'long string as input' => [static function (CommandPool $pool): void {
            $pool->execute(Command::of('cat')->withInput(str_repeat('x', 1 << 20)));
        }];
        yield 'iterable that is not read to its end' => [static function (CommandPool $pool) use ($head): void {
            $pool->execute($head->withInput((static function (): \Generator {
                while (true) {
                    yield str_repeat('x', 1 << 20);
                }
            })()));
        }];
        yield 'stream as input' => [static function (CommandPool $pool) use ($head): void {
            $zeros = fopen('/dev/zero', 'r');
            self::assertIsResource($zeros);
            $pool->execute($head->withInput($zeros));
        }];
        yield 'retried command' => [static function (): void {
            $retries = new CommandPool(1, 1);
            $retries->execute(Command::shell('cat; exit 1')->withInput(str_repeat('x', 1 << 20)));
            $retries->close();
        }];
        yield 'closure as output' => [static function (CommandPool $pool) use ($both): void {
            $pool->execute($both->withStdout(static function (): void {}));
        }];
        yield 'stream as output' => [static function (CommandPool $pool) use ($both): void {
            $null = fopen('/dev/null', 'w');
            self::assertIsResource($null);
            $pool->execute($both->withStdout($null));
        }];
        yield 'failed callback' => [static function (CommandPool $pool): void {
            $fail = static fn() => throw new \RuntimeException('failed');
            $command = Command::shell('head -c 900000 /dev/zero >&2; echo; sleep 30')->withStdout($fail);
            self::ignore(static fn(): CommandResult => $pool->execute($command));
        }];
        yield 'suspended callback of a cancelled command' => [static function (CommandPool $pool): void {
            $cancellation = new DeferredCancellation();
            $suspend = static function () use ($cancellation): void {
                $cancellation->cancel();
                EventLoop::getSuspension()->suspend();
            };
            $command = Command::shell('head -c 900000 /dev/zero >&2; echo; sleep 30')->withStdout($suspend);
            self::ignore(static fn(): CommandResult => $pool->execute($command, $cancellation->getCancellation()));
        }];
        yield 'killed pool' => [static function (): void {
            $killed = new CommandPool(1);
            $command = Command::shell('head -c 900000 /dev/zero >&2; echo; sleep 30')->withStdout($killed->kill(...));
            self::ignore(static fn(): CommandResult => $killed->execute($command));
        }];
        yield 'unread results' => [static function (CommandPool $pool): void {
            $output = Command::of('head', '-c', '900000', '/dev/zero');
            foreach ($pool->run([$output, $output, $output]) as $_) {
                Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 0, 'all commands have ended');
                break;
            }
        }];
    }

    /** Returns the used bytes when the fibers that read input have ended: they resume after the caller of a command. */
    private static function usedMemory(): int
    {
        delay(0.001);
        delay(0.0);

        return memory_get_usage();
    }

    /** @param \Closure(): CommandResult $execute has no result, because the command or its pool was ended */
    private static function ignore(\Closure $execute): void
    {
        try {
            $execute();
        } catch (CancelledException|LauncherException|\RuntimeException) {
            return;
        }
        self::fail('The command was not ended');
    }

    /** Returns the CPU time of this process's ended children, in hundredths of a second. */
    private static function childrensTime(): int
    {
        $times = posix_times();
        $used = 0;
        foreach (['cutime', 'cstime'] as $name) {
            $time = $times[$name] ?? null;
            $used += \is_int($time) ? $time : 0;
        }

        return $used;
    }

    /** Returns the number of commands that sleep. */
    private static function sleepers(): int
    {
        $children = array_map(Processes::childrenOf(...), Processes::launchers());

        return \count((array) preg_grep('/^sleep /', array_merge(...$children)));
    }

    /** Returns hundredths of a second. */
    private static function launchersTime(): int
    {
        return array_sum(array_map(Processes::processorTime(...), Processes::launchers()));
    }

    /** Returns kilobytes. */
    private static function residentMemory(int $pid): int
    {
        return preg_match('/^VmRSS:\s+(\d+)/m', (string) @file_get_contents("/proc/{$pid}/status"), $match) === 1
            ? (int) $match[1]
            : 0;
    }
}
