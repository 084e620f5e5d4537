<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;
use Spindle\LauncherException;
use Spindle\Tests\FreeDescriptors;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\Future\awaitFirst;

/** Few descriptors, or none. */
final class DescriptorExhaustionTest extends TidyTestCase
{
    use OwnDirectory;

    protected function deadline(): int
    {
        return Scale::isFull() ? 230 : 120;
    }

    /** @return iterable<string, array{StartMethod, int}> */
    public static function fewDescriptors(): iterable
    {
        foreach (LauncherPhp::startMethods() as $name => [$start]) {
            foreach ([40, 48, 64] as $limit) {
                yield "{$name}, {$limit} descriptors" => [$start, $limit];
            }
        }
    }

    #[DataProvider('fewDescriptors')]
    public function testWithFewDescriptorsAsManyRunAsThereIsCapacityFor(StartMethod $start, int $limit): void
    {
        $answer = Host::call(self::class . '::useAllDescriptors', [$start->value], self::withDescriptors($limit));
        self::assertIsArray($answer);
        [$maxConcurrency, $succeeded] = $answer;

        self::assertGreaterThan(0, $maxConcurrency);
        self::assertSame(100, $succeeded);
    }

    /** @return array{int, int} */
    public static function useAllDescriptors(string $start): array
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $maxConcurrency = $pool->maxConcurrency();
        $pool->resize($maxConcurrency);
        $succeeded = 0;
        foreach ($pool->run(array_fill(0, 100, Command::of('cat')->withInput('x'))) as $result) {
            $succeeded += $result->succeeded() && $result->stdout() === 'x' ? 1 : 0;
        }

        return [$maxConcurrency, $succeeded];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testLargeOutputsThatAreKeptNeedNoDescriptorEach(StartMethod $start): void
    {
        self::assertSame(
            [150, 0],
            Host::call(self::class . '::keepLargeOutputs', [$start->value], self::withDescriptors(128)),
        );
    }

    /**
     * @return array{int, int} number of complete outputs, and of temporary files that are open after the results are
     *                         gone
     */
    public static function keepLargeOutputs(string $start): array
    {
        $commands = static function (): \Generator {
            for ($i = 0; $i < 150; ++$i) {
                yield $i => Command::shell("head -c 1050000 /dev/zero; echo {$i}");
            }
        };
        $results = iterator_to_array(
            (new CommandPool(4, 0, new CommandPoolOptions(startMethod: StartMethod::from($start))))->run($commands()),
        );
        $whole = 0;
        foreach ($results as $i => $result) {
            $whole += (int) ($result->succeeded() && $result->stdout() === str_repeat("\0", 1_050_000) . "{$i}\n");
        }
        unset($results, $result);
        $open = 0;
        foreach (Text::names('/proc/self/fd') as $descriptor) {
            $open += (int) preg_match(
                '~/spindle-[0-9a-f]{24} \(deleted\)$~',
                (string) @readlink("/proc/self/fd/{$descriptor}"),
            );
        }

        return [$whole, $open];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testMoreAtOnceThanDescriptorsIsRefusedBeforeAnythingStarts(StartMethod $start): void
    {
        $answer = Host::call(
            self::class . '::askForTooMany',
            [$start->value, $this->path('started')],
            self::withDescriptors(256),
        );
        self::assertIsArray($answer);
        [$message, $resized, $maxConcurrency, $results] = $answer;

        self::assertIsString($message);
        self::assertIsInt($maxConcurrency);
        self::assertStringContainsString('1000 commands at once', $message);
        self::assertStringContainsString("It can run {$maxConcurrency} at once with {$start->value}.", $message);
        self::assertSame($message, $resized, 'a running pool is told the same');
        self::assertSame(0, $results, 'no command has a result');
        self::assertFileDoesNotExist($this->path('started'));
    }

    /** @return array{string, string, int, int} two messages, the largest concurrency, and the number of results */
    public static function askForTooMany(string $start, string $file): array
    {
        $throw = static fn(int $level, string $message): bool => throw new \ErrorException($message, 0, $level);
        set_error_handler($throw, \E_WARNING);
        $options = new CommandPoolOptions(startMethod: StartMethod::from($start));
        $messages = [];
        $results = 0;
        try {
            foreach ((new CommandPool(1000, 0, $options))->run(array_fill(
                0,
                2000,
                Command::of('touch', $file),
            )) as $_) {
                ++$results;
            }
        } catch (\Throwable $exception) {
            $messages[] = $exception->getMessage();
        }
        $pool = new CommandPool(1, 0, $options);
        $pool->execute(Command::of('true'));
        try {
            $pool->resize(1000);
        } catch (LauncherException $exception) {
            $messages[] = $exception->getMessage();
        }

        return [$messages[0] ?? '', $messages[1] ?? '', $pool->maxConcurrency(), $results];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAPoolThatIsResizedAfterARefusalRefusesNoFurtherCommand(StartMethod $start): void
    {
        self::assertSame(4, Host::call(
            self::class . '::resizeAfterRefusal',
            [$start->value, $this->path()],
            self::withDescriptors(256),
        ));
    }

    /** All launchers except one begin only after the first refusal, so their own refusals arrive after resize(). */
    public static function resizeAfterRefusal(string $start, string $directory): int
    {
        $php = LauncherPhp::wrapper(
            $directory,
            "mkdir '{$directory}/first' 2>/dev/null || until [ -e '{$directory}/refused' ]; do sleep 0.05; done",
        );
        $options = new CommandPoolOptions(startMethod: StartMethod::from($start), php: $php);
        $pool = new CommandPool(1000, 0, $options);
        $refused = [];
        for ($i = 0; $i < 4; ++$i) { // at least one for each launcher
            $refused[] = $future = async($pool->execute(...), Command::of('true'));
            $future->ignore();
        }
        try {
            awaitFirst($refused);
        } catch (\Throwable) {
            touch("{$directory}/refused");
            $pool->resize(4);
        }
        $succeeded = 0;
        foreach ($pool->run(array_fill(0, 4, Command::of('true'))) as $result) {
            $succeeded += (int) $result->succeeded();
        }

        return $succeeded;
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAnyNumberOfJobsThreeHundredAtOnceNeedsNoMoreThanTheUsualDescriptors(StartMethod $start): void
    {
        $count = Scale::isFull() ? 20_000 : 1_200; // more than the descriptor limit

        self::assertSame(
            $count,
            Host::call(self::class . '::runMany', [$start->value, $count], self::withDescriptors(1024)),
        );
    }

    public static function runMany(string $start, int $count): int
    {
        $commands = static function () use ($count): \Generator {
            for ($i = 0; $i < $count; ++$i) {
                yield $i => Command::of('echo', (string) $i);
            }
        };
        $pool = new CommandPool(300, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $seen = [];
        foreach ($pool->run($commands()) as $key => $result) {
            if ($result->stdout() === "{$key}\n") {
                $seen[$key] = true;
            }
        }

        return \count($seen);
    }

    /** @return iterable<string, array{StartMethod, int}> */
    public static function manyDescriptors(): iterable
    {
        foreach (LauncherPhp::startMethods() as $name => [$start]) {
            yield "{$name}, few are left" => [$start, 1024];
            yield "{$name}, few are left that stream_select takes" => [$start, 4096];
        }
    }

    #[DataProvider('manyDescriptors')]
    public function testAProcessThatHasManyDescriptorsInUseStillHasAPool(StartMethod $start, int $limit): void
    {
        self::assertSame(
            50,
            Host::call(self::class . '::useManyDescriptors', [$start->value], self::withDescriptors($limit)),
        );
    }

    public function testADescriptorThatTheLauncherInheritsIsNotPassedToCommands(): void
    {
        if (!LauncherPhp::hasFfi()) {
            self::markTestSkipped('Only the launcher with FFI can close descriptors');
        }
        $descriptors = Host::call(self::class . '::listDescriptors', [], self::withDescriptors(1024));

        self::assertIsString($descriptors);
        self::assertStringNotContainsString('passwd', $descriptors);
    }

    public static function listDescriptors(): string
    {
        $files = [];
        for ($i = 0; $i < 960; ++$i) {
            $files[] = fopen('/etc/passwd', 'r');
        }
        $listed = (new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::PosixSpawn)))->execute(
            Command::shell('readlink /proc/self/fd/*; :'),
        );
        array_map(fclose(...), array_filter($files));

        return $listed->stdout();
    }

    public static function useManyDescriptors(string $start): int
    {
        $files = [];
        for ($i = 0; $i < 960; ++$i) {
            $files[] = fopen('/etc/passwd', 'r');
        }
        $pool = new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->resize(min(40, $pool->maxConcurrency()));
        $succeeded = 0;
        foreach ($pool->run(array_fill(0, 50, Command::shell('sleep 0.1; echo x'))) as $result) {
            $succeeded += $result->stdout() === "x\n" ? 1 : 0;
        }
        array_map(fclose(...), array_filter($files));

        return $succeeded;
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAProcessWithoutAFreeDescriptorIsToldSo(StartMethod $start): void
    {
        $message = Host::call(self::class . '::useEveryDescriptor', [$start->value], self::withDescriptors(64));

        self::assertIsString($message);
        self::assertStringContainsString('Too many open files', $message);
    }

    public static function useEveryDescriptor(string $start): string
    {
        $options = new CommandPoolOptions(startMethod: StartMethod::from($start));
        $pool = new CommandPool(1, 0, $options);
        // Classes are loaded now, because loading a class file later needs a descriptor.
        class_exists(LauncherException::class);
        $first = new CommandPool(1, 0, $options);
        $first->execute(Command::of('true'));
        $first->kill();
        $files = FreeDescriptors::useAll();
        array_pop($files);
        try {
            $pool->execute(Command::of('true'));
        } catch (LauncherException $exception) {
            return $exception->getMessage();
        }

        return 'it ran';
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testARunEndsWellInAProcessThatHasUsedUpItsDescriptors(StartMethod $start): void
    {
        self::assertSame(
            3,
            Host::call(self::class . '::useUpDescriptors', [$start->value], ['prlimit', '--nofile=200']),
        );
    }

    public static function useUpDescriptors(string $start): int
    {
        $run = (new CommandPool(
            2,
            0,
            new CommandPoolOptions(startMethod: StartMethod::from($start)),
        ))->run(array_fill(0, 3, Command::of('true')));
        $files = [];
        foreach ($run as $_) {
            $files = [...$files, ...FreeDescriptors::useAll()];
            usleep(2000); // long enough for the run to yield to the event loop before the next result
        }
        $summary = $run->getReturn();
        array_map(fclose(...), $files);

        return $summary->succeeded;
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testARunningPoolServesAProcessThatHasUsedUpItsDescriptors(StartMethod $start): void
    {
        $answer = Host::call(self::class . '::useWithoutDescriptors', [$start->value], ['prlimit', '--nofile=200']);
        self::assertIsArray($answer);
        $death = array_pop($answer);

        self::assertSame([500_000, false, 0, false, 4, false, 0, true, "to a closure\n"], $answer);
        self::assertIsString($death);
        self::assertStringContainsString('signal 9', $death);
    }

    /**
     * @return list<int|bool|string> length of each output and whether it timed out, output of the closure, and message
     *                               of the launcher's death
     */
    public static function useWithoutDescriptors(string $start): array
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->run([Command::of('true')])->current();
        $commands = [
            Command::of('cat')->withInput(str_repeat('x', 500_000)), // more than the capacity of the launcher's pipe
            Command::of('echo', 'to a closure')->withStdout(static function (string $bytes) use (&$closure): void {
                $closure .= $bytes;
            }),
            Command::shell('/bin/echo a b'),
            Command::of('sleep', '20')->withTimeout(0.1),
            Command::shell('kill -9 $PPID; exit'),
        ];
        $files = FreeDescriptors::useAll();
        $seen = [];
        $death = $closure = '';
        try {
            foreach ($commands as $command) {
                $result = $pool->execute($command);
                array_push($seen, \strlen($result->stdout()), $result->timedOut);
            }
        } catch (LauncherException $exception) {
            $death = $exception->getMessage();
        }
        array_map(fclose(...), $files);

        return [...$seen, $closure, $death];
    }

    /** @return list<string> */
    private static function withDescriptors(int $limit): array
    {
        return ['sh', '-c', "ulimit -n {$limit} && exec \"\$@\"", 'sh'];
    }
}
