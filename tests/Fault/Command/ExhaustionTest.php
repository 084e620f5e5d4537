<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\DataProviderExternal;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;
use Spindle\LauncherException;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;

/** No room on the disk, no descriptors, no processes. */
final class ExhaustionTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;

    private string $cgroup = '';

    protected function deadline(): int
    {
        return 30 + intdiv(Scale::of(20_000), 100);
    }

    protected function tearDown(): void
    {
        if ($this->cgroup !== '') {
            rmdir($this->cgroup);
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAFullDiskFailsTheCommandWhoseOutputDoesNotFitAndNoOther(StartMethod $start): void
    {
        $results = Host::call(self::class . '::fillTheDisk', [$start->value, $this->path()], $this->withSmallDisk());

        self::assertIsArray($results);
        self::assertCount(70, $results);
        foreach ($results as $key => $result) {
            self::assertIsString($result);
            if ($key < 66) {
                self::assertStringContainsString("temporary file in {$this->path()}: No space left on device", $result);
            } else {
                self::assertSame("small\n", $result);
            }
        }
    }

    /** @return array<string> */
    public static function fillTheDisk(string $start, string $directory): array
    {
        $commands = array_fill(0, 66, Command::shell('head -c 8000000 /dev/zero; sleep 100'));
        array_push($commands, ...array_fill(0, 4, Command::shell('sleep 0.2; echo small')));
        $pool = new CommandPool(4, 0, new CommandPoolOptions(grace: 0.1, start: StartMethod::from($start), temporaryDirectory: $directory));

        return array_map(static fn($result): string => $result->error ?? $result->stdout(), iterator_to_array($pool->runInOrder($commands)));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAFullDiskIsToldOfAtTheEndOfACommandToo(StartMethod $start): void
    {
        $error = Host::call(self::class . '::fillTheDiskLast', [$start->value, $this->path()], $this->withSmallDisk());

        self::assertIsString($error);
        self::assertStringContainsString('No space left on device', $error);
    }

    /** What is too much comes with the exit itself. */
    public static function fillTheDiskLast(string $start, string $directory): ?string
    {
        file_put_contents("{$directory}/filled", str_repeat('x', 7 << 19));
        $pool = new CommandPool(1, 0, new CommandPoolOptions(start: StartMethod::from($start), temporaryDirectory: $directory));

        return $pool->execute(Command::of('head', '-c', '1070000', '/dev/zero'))->error;
    }

    public function testATemporaryDirectoryThatIsNotThereFailsTheCommandThatNeedsIt(): void
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(temporaryDirectory: $this->path('missing')));
        $large = $pool->execute(Command::of('head', '-c', '3000000', '/dev/zero'));

        self::assertFalse($large->succeeded());
        self::assertStringContainsString("temporary file in {$this->path('missing')}: No such file or directory", (string) $large->error);
        self::assertSame("small\n", $pool->execute(Command::of('echo', 'small'))->stdout());
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
        [$capacity, $succeeded] = $answer;

        self::assertGreaterThan(0, $capacity);
        self::assertSame(200, $succeeded);
    }

    /** @return array{int, int} */
    public static function useAllDescriptors(string $start): array
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(start: StartMethod::from($start)));
        $capacity = $pool->capacity();
        $pool->resize($capacity);
        $succeeded = 0;
        foreach ($pool->run(array_fill(0, 200, Command::of('cat')->withInput('x'))) as $result) {
            $succeeded += $result->succeeded() && $result->stdout() === 'x' ? 1 : 0;
        }

        return [$capacity, $succeeded];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testLargeOutputsThatAreKeptNeedNoDescriptorEach(StartMethod $start): void
    {
        self::assertSame([150, 0], Host::call(self::class . '::keepLargeOutputs', [$start->value], self::withDescriptors(128)));
    }

    /** @return array{int, int} whole outputs, and temporary files that are open when the results are gone */
    public static function keepLargeOutputs(string $start): array
    {
        $commands = static function (): \Generator {
            for ($i = 0; $i < 150; ++$i) {
                yield $i => Command::shell("head -c 1050000 /dev/zero; echo {$i}");
            }
        };
        $results = iterator_to_array((new CommandPool(4, 0, new CommandPoolOptions(start: StartMethod::from($start))))->run($commands()));
        $whole = 0;
        foreach ($results as $i => $result) {
            $whole += (int) ($result->succeeded() && $result->stdout() === str_repeat("\0", 1_050_000) . "{$i}\n");
        }
        unset($results, $result);
        $open = 0;
        foreach (Text::names('/proc/self/fd') as $descriptor) {
            $open += (int) preg_match('~/spindle-[0-9a-f]{24} \(deleted\)$~', (string) @readlink("/proc/self/fd/{$descriptor}"));
        }

        return [$whole, $open];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testMoreAtOnceThanDescriptorsIsRefusedBeforeAnythingStarts(StartMethod $start): void
    {
        $answer = Host::call(self::class . '::askForTooMany', [$start->value, $this->path('started')], self::withDescriptors(256));
        self::assertIsArray($answer);
        [$message, $resized] = $answer;

        self::assertIsString($message);
        self::assertStringContainsString('1000 commands at once', $message);
        self::assertMatchesRegularExpression('/it can run \d+ at once through ' . $start->value . '/', $message);
        self::assertSame($message, $resized, 'a running pool is told the same');
        self::assertFileDoesNotExist($this->path('started'));
    }

    /** @return array{string, string} */
    public static function askForTooMany(string $start, string $file): array
    {
        $options = new CommandPoolOptions(start: StartMethod::from($start));
        $messages = [];
        try {
            foreach ((new CommandPool(1000, 0, $options))->run(array_fill(0, 2000, Command::of('touch', $file))) as $_) {
                continue;
            }
        } catch (LauncherException $exception) {
            $messages[] = $exception->getMessage();
        }
        $pool = new CommandPool(1, 0, $options);
        $pool->execute(Command::of('true'));
        try {
            $pool->resize(1000);
        } catch (LauncherException $exception) {
            $messages[] = $exception->getMessage();
        }

        return [$messages[0] ?? '', $messages[1] ?? ''];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testTwentyThousandJobsThreeHundredAtOnceNeedNoMoreThanTheUsualDescriptors(StartMethod $start): void
    {
        $count = Scale::of(20_000);

        self::assertSame($count, Host::call(self::class . '::runMany', [$start->value, $count], self::withDescriptors(1024)));
    }

    public static function runMany(string $start, int $count): int
    {
        $commands = static function () use ($count): \Generator {
            for ($i = 0; $i < $count; ++$i) {
                yield $i => Command::of('echo', (string) $i);
            }
        };
        $pool = new CommandPool(300, 0, new CommandPoolOptions(start: StartMethod::from($start)));
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
        self::assertSame(50, Host::call(self::class . '::useManyDescriptors', [$start->value], self::withDescriptors($limit)));
    }

    public function testWhereADescriptorCanNotBeKeptFromTheLauncherItIsKeptFromCommands(): void
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
        $listed = (new CommandPool(1, 0, new CommandPoolOptions(start: StartMethod::PosixSpawn)))->execute(Command::shell('readlink /proc/self/fd/*; :'));
        array_map(fclose(...), array_filter($files));

        return $listed->stdout();
    }

    public static function useManyDescriptors(string $start): int
    {
        $files = [];
        for ($i = 0; $i < 960; ++$i) {
            $files[] = fopen('/etc/passwd', 'r');
        }
        $pool = new CommandPool(1, 0, new CommandPoolOptions(start: StartMethod::from($start)));
        $pool->resize(min(40, $pool->capacity()));
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
        $pool = new CommandPool(1, 0, new CommandPoolOptions(start: StartMethod::from($start)));
        // Loaded beforehand, for a class file is a descriptor as well.
        $pool->execute(Command::of('true'));
        class_exists(LauncherException::class);
        $pool->close();
        $files = [];
        while (($file = @fopen('/dev/null', 'r')) !== false) {
            $files[] = $file;
        }
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
        self::assertSame(3, Host::call(self::class . '::useUpDescriptors', [$start->value], ['prlimit', '--nofile=200']));
    }

    public static function useUpDescriptors(string $start): int
    {
        $run = (new CommandPool(2, 0, new CommandPoolOptions(start: StartMethod::from($start))))->run(array_fill(0, 3, Command::of('true')));
        $files = [];
        foreach ($run as $_) {
            while (($file = @fopen('/dev/null', 'r')) !== false) {
                $files[] = $file;
            }
            usleep(2000); // long enough for the run to let the event loop turn before the next result
        }
        $summary = $run->getReturn();
        array_map(fclose(...), $files);

        return $summary->succeeded;
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWhereNoMoreProcessesAreAllowedCommandsWaitForThoseThatRun(StartMethod $start): void
    {
        $within = $this->withProcesses(9);

        self::assertSame(60, Host::call(self::class . '::needManyProcesses', [$start->value], $within));
    }

    public static function needManyProcesses(string $start): int
    {
        $pool = new CommandPool(20, 0, new CommandPoolOptions(start: StartMethod::from($start)));
        $succeeded = 0;
        foreach ($pool->run(array_fill(0, 60, Command::of('sleep', '0.02'))) as $result) {
            $succeeded += $result->succeeded() ? 1 : 0;
        }

        return $succeeded;
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWhereNoProcessIsAllowedAtAllTheResultSaysSo(StartMethod $start): void
    {
        $within = $this->withProcesses(20);
        $answer = Host::call(self::class . '::needOneProcess', [$start->value, $this->cgroup], $within);
        self::assertIsArray($answer);
        [$refused, $later] = $answer;
        self::assertIsString($refused);

        self::assertStringContainsString('pids cgroup', $refused);
        self::assertSame("later\n", $later);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWhereNoProcessIsAllowedAtAllThousandsOfCommandsAreToldSoTogether(StartMethod $start): void
    {
        $within = $this->withProcesses(20);

        self::assertSame(2000, Host::call(self::class . '::needProcessesInVain', [$start->value, $this->cgroup], $within));
    }

    public static function needProcessesInVain(string $start, string $cgroup): int
    {
        $pool = new CommandPool(8, 0, new CommandPoolOptions(start: StartMethod::from($start)));
        $pool->execute(Command::of('true'));
        file_put_contents("{$cgroup}/pids.max", '1');
        $refused = 0;
        foreach ($pool->run(array_fill(0, 2000, Command::of('true'))) as $result) {
            $refused += $result->exitCode === 126 ? 1 : 0;
        }

        return $refused;
    }

    /** @return array{string, string} */
    public static function needOneProcess(string $start, string $cgroup): array
    {
        $pool = new CommandPool(2, 0, new CommandPoolOptions(start: StartMethod::from($start)));
        $pool->execute(Command::of('true'));
        file_put_contents("{$cgroup}/pids.max", '1');
        $refused = $pool->execute(Command::of('true'))->describe();
        file_put_contents("{$cgroup}/pids.max", '20');

        return [$refused, $pool->execute(Command::of('echo', 'later'))->stdout()];
    }

    /** @return list<string> a file system of four megabytes at the test's directory, for one process and its children */
    private function withSmallDisk(): array
    {
        $within = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o size=4m none "$0" && exec "$@"', $this->path()];
        exec(implode(' ', array_map(escapeshellarg(...), [...$within, 'true'])) . ' 2>/dev/null', result_code: $code);
        if ($code !== 0) {
            self::markTestSkipped('A file system can not be mounted here');
        }

        return $within;
    }

    /** @return list<string> */
    private static function withDescriptors(int $limit): array
    {
        return ['sh', '-c', "ulimit -n {$limit} && exec \"\$@\"", 'sh'];
    }

    /** @return list<string> */
    private function withProcesses(int $limit): array
    {
        foreach (['/sys/fs/cgroup/pids', '/sys/fs/cgroup'] as $root) {
            $group = "{$root}/spindle-test-" . bin2hex(random_bytes(6));
            if (!is_writable($root) || !@mkdir($group)) {
                continue;
            }
            if (is_file("{$group}/pids.max")) {
                $this->cgroup = $group;
                file_put_contents("{$group}/pids.max", (string) $limit);

                return ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', $group];
            }
            rmdir($group);
        }
        self::markTestSkipped('There is no pids cgroup to be had here');
    }
}
