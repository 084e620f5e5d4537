<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\DataProviderExternal;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\RetryPolicy;
use Spindle\Command\StartMethod;
use Spindle\Command\StreamException;
use Spindle\Command\TaskRunner;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\Streams;
use Spindle\Tests\TidyTestCase;

/** A full disk, a low memory limit, and no more processes. */
final class ExhaustionTest extends TidyTestCase
{
    use OwnDirectory;

    private string $cgroup = '';

    protected function tearDown(): void
    {
        if ($this->cgroup !== '') {
            rmdir($this->cgroup);
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAFullDiskFailsTheCommandWhoseOutputDoesNotFitAndNoOther(StartMethod $start): void
    {
        // More than the number of outputs that the pool keeps in files, for at least one of the start methods.
        $isUsual = $start === StartMethod::PosixSpawn || !LauncherPhp::hasFfi();
        $large = $isUsual || Scale::isFull() ? 66 : 6;
        $results = Host::call(
            self::class . '::fillTheDisk',
            [$start->value, $this->path(), $large],
            $this->withSmallDisk(),
        );

        self::assertIsArray($results);
        self::assertCount($large + 4, $results);
        foreach ($results as $key => $result) {
            self::assertIsString($result);
            if ($key < $large) {
                self::assertStringContainsString("temporary file in {$this->path()}: No space left on device", $result);
            } else {
                self::assertSame("small\n", $result);
            }
        }
    }

    /** @return array<string> */
    public static function fillTheDisk(string $start, string $directory, int $large): array
    {
        $commands = array_fill(0, $large, Command::shell('head -c 8000000 /dev/zero; sleep 100'));
        array_push($commands, ...array_fill(0, 4, Command::shell('sleep 0.2; echo small')));
        $pool = new CommandPool(
            4,
            0,
            new CommandPoolOptions(
                gracePeriod: 0.1,
                startMethod: StartMethod::from($start),
                temporaryDirectory: $directory,
            ),
        );

        return array_map(
            static fn($result): string => $result->error ?? $result->stdout(),
            iterator_to_array($pool->runInOrder($commands)),
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAFullDiskIsToldOfAtTheEndOfACommandToo(StartMethod $start): void
    {
        $error = Host::call(self::class . '::fillTheDiskLast', [$start->value, $this->path()], $this->withSmallDisk());

        self::assertIsString($error);
        self::assertStringContainsString('No space left on device', $error);
    }

    /** The output that does not fit arrives together with the exit. */
    public static function fillTheDiskLast(string $start, string $directory): ?string
    {
        file_put_contents("{$directory}/filled", str_repeat('x', 7 << 19));
        $pool = new CommandPool(
            1,
            0,
            new CommandPoolOptions(startMethod: StartMethod::from($start), temporaryDirectory: $directory),
        );

        return $pool->execute(Command::of('head', '-c', '1070000', '/dev/zero'))->error;
    }

    public function testOutputBeyondTheFileSizeLimitFailsItsCommand(): void
    {
        $results = Host::call(self::class . '::exceedTheFileSizeLimit', within: ['prlimit', '--fsize=500000']);

        self::assertSame(
            [
                'Could not write a temporary file in ' . sys_get_temp_dir() . ': File too large',
                'Could not write output to the stream that was set for it: File too large',
                '2000000',
                "small\n",
            ],
            $results,
        );
    }

    /** @return list<string> */
    public static function exceedTheFileSizeLimit(): array
    {
        $file = tmpfile();
        $memory = fopen('php://memory', 'w+');
        \assert($file !== false && $memory !== false);
        $large = Command::of('head', '-c', '2000000', '/dev/zero');
        $pool = new CommandPool(1);

        return [
            (string) $pool->execute($large)->error,
            (string) $pool->execute($large->withStdout($file))->error,
            $pool->execute($large->withStdout($memory))->error ?? (string) ftell($memory),
            $pool->execute(Command::of('echo', 'small'))->stdout(),
        ];
    }

    public function testATaskThatCanNotBeStoredHarmsNoOtherTask(): void
    {
        $within = [...$this->withSmallDisk(), 'env', "TMPDIR={$this->path()}"];
        [$stored, $failure, $ran] = (array) Host::call(self::class . '::storeTasks', [$this->path()], $within);

        self::assertIsString($failure);
        self::assertStringContainsString('No space left on device', $failure);
        self::assertIsInt($stored);
        self::assertEqualsCanonicalizing([...range(1, $stored), 'late', 'later'], $ran);
    }

    /** @return array{int, string, list<mixed>} number of stored tasks, failure, and ids of the tasks that have run */
    public static function storeTasks(string $directory): array
    {
        file_put_contents("{$directory}/filled", str_repeat('x', 2_700_000));
        $runner = new TaskRunner(2);
        [$stored, $failure] = [0, ''];
        while ($failure === '') {
            try {
                $runner->add($stored + 1, 'true #' . str_repeat('x', 100_000));
                ++$stored;
            } catch (StreamException $failed) {
                $failure = $failed->getMessage();
            }
        }
        unlink("{$directory}/filled");
        $runner->add('late', 'true');
        $runner->add('later', 'true');
        $ran = [];
        $runner->runAndWait(static function (array $result) use (&$ran): void {
            $ran[] = $result['id'];
        });

        return [$stored, $failure, $ran];
    }

    #[TestWith([80, 900_000])]
    #[TestWith([1200, 60_000])]
    public function testOutputThatDoesNotFitIntoTheMemoryLimitIsInFiles(int $count, int $bytes): void
    {
        self::assertSame(
            [$count * $bytes, true],
            Host::call(self::class . '::exceedTheMemoryLimit', [$count, $bytes], options: ['-d', 'memory_limit=64M']),
        );
    }

    /** @return array{int, bool} bytes of all outputs, and whether they need at most a quarter of the memory limit */
    public static function exceedTheMemoryLimit(int $count, int $bytes): array
    {
        $pool = new CommandPool(4);
        $pool->execute(Command::of('true'));
        $before = memory_get_usage();
        $results = [];
        $command = Command::of('head', '-c', (string) $bytes, '/dev/zero');
        foreach ($pool->run(array_fill(0, $count, $command)) as $result) {
            $results[] = $result;
        }
        $used = memory_get_usage() - $before;
        $sizes = array_map(static fn($result): int => \strlen($result->stdout()), $results);

        return [array_sum($sizes), $used <= 20 << 20]; // 4 MiB for the results themselves
    }

    public function testStreamedOutputOfManyCommandsFitsIntoTheMemoryLimit(): void
    {
        self::assertSame(
            100_000_000,
            Host::call(self::class . '::streamMoreThanTheMemory', options: ['-d', 'memory_limit=64M']),
        );
    }

    /** No output is taken until each of the commands has sent some. */
    public static function streamMoreThanTheMemory(): int
    {
        $pool = new CommandPool(100);
        $waiting = 100;
        $all = new DeferredFuture();
        $bytes = 0;
        $take = static function (string $piece) use (&$waiting, &$bytes, $all): void {
            if (--$waiting === 0) {
                $all->complete();
            }
            $all->getFuture()->await();
            $bytes += \strlen($piece);
        };
        $command = Command::of('head', '-c', '1000000', '/dev/zero')->withStdout($take);
        foreach ($pool->run(array_fill(0, 100, $command)) as $result) {
            self::assertTrue($result->succeeded());
        }

        return $bytes;
    }

    public function testStreamedInputOfManyCommandsFitsIntoTheMemoryLimit(): void
    {
        self::assertSame(
            100,
            Host::call(self::class . '::feedManyCommands', options: ['-d', 'memory_limit=64M']),
        );
    }

    /** @return int number of commands that have read their whole input */
    public static function feedManyCommands(): int
    {
        $pool = new CommandPool(100);
        $piece = str_repeat('x', 1 << 16);
        $input = static function () use ($piece): \Generator {
            for ($i = 0; $i < 16; ++$i) {
                yield $piece;
            }
        };
        $commands = [];
        for ($i = 0; $i < 100; ++$i) {
            $commands[] = Command::of('wc', '-c')->withInput($input());
        }
        $succeeded = 0;
        foreach ($pool->run($commands) as $result) {
            $succeeded += $result->stdout() === "1048576\n" ? 1 : 0;
        }

        return $succeeded;
    }

    public function testACommandWhoseOutputCouldNotBeStoredIsNotRetriedAfterATimeout(): void
    {
        // Further attempts are only made while the shell is ended before it has set the trap.
        $retries = new RetryPolicy(30, delay: 0.0);
        $pool = new CommandPool(1, $retries, new CommandPoolOptions(temporaryDirectory: $this->path('missing')));
        $result = $pool->execute(
            Command::shell('trap "head -c 3000000 /dev/zero; exit 1" TERM; while :; do sleep 0.05; done')
                ->withTimeout(0.1),
        );

        self::assertTrue($result->timedOut);
        self::assertLessThan(31, $result->attempts);
        self::assertStringContainsString("temporary file in {$this->path('missing')}", (string) $result->error);
    }

    /** The last bytes of the outputs arrive together with the exit, so the pool can't end the commands before. */
    public function testACommandWhoseOutputIsLostHasNotTheExitCodeZero(): void
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(temporaryDirectory: $this->path('missing')));
        $lost = $pool->execute(Command::of('head', '-c', '1048577', '/dev/zero'));
        $streamed = $pool->execute(Command::of('echo', 'lost')->withStdout(Streams::open('/dev/full', 'w')));
        $failed = $pool->execute(Command::shell('head -c 1048577 /dev/zero; exit 3'));

        self::assertNull($lost->exitCode);
        self::assertStringContainsString('No such file or directory', (string) $lost->error);
        self::assertNull($streamed->exitCode);
        self::assertStringContainsString('No space left on device', (string) $streamed->error);
        self::assertContains($failed->exitCode, [3, null], 'another code remains');
    }

    public function testATemporaryDirectoryThatIsNotThereFailsTheCommandThatNeedsIt(): void
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(temporaryDirectory: $this->path('missing')));
        $large = $pool->execute(Command::of('head', '-c', '3000000', '/dev/zero'));

        self::assertFalse($large->succeeded());
        self::assertStringContainsString(
            "temporary file in {$this->path('missing')}: No such file or directory",
            (string) $large->error,
        );
        self::assertSame("small\n", $pool->execute(Command::of('echo', 'small'))->stdout());
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testWithoutFreeProcessesCommandsWaitForRunningOnes(StartMethod $start): void
    {
        $within = $this->withProcesses(9);

        self::assertSame(60, Host::call(self::class . '::needManyProcesses', [$start->value], $within));
    }

    public static function needManyProcesses(string $start): int
    {
        $pool = new CommandPool(20, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $succeeded = 0;
        foreach ($pool->run(array_fill(0, 60, Command::of('sleep', '0.02'))) as $result) {
            $succeeded += $result->succeeded() ? 1 : 0;
        }

        return $succeeded;
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAfterALackOfProcessesCommandsStartBeforeARunningOneEnds(StartMethod $start): void
    {
        $within = $this->withProcesses(20);

        self::assertSame(
            ["later\n", 1],
            Host::call(self::class . '::lackProcesses', [$start->value, $this->cgroup], $within),
        );
    }

    /** @return array{string, int} output of a command, and how many commands are running then */
    public static function lackProcesses(string $start, string $cgroup): array
    {
        $pool = new CommandPool(2, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->execute(Command::of('true')); // now, so that the launcher exists before the processes are counted
        $long = static fn(): array => iterator_to_array($pool->run(['long' => Command::of('sleep', '1000')]));
        Async::run($long)->ignore();
        $pids = static fn(): int => (int) file_get_contents("{$cgroup}/pids.current");
        $before = $pids();
        Eventually::holds(static fn(): bool => $pids() > $before, 'the long command runs');
        file_put_contents("{$cgroup}/pids.max", '1');
        $refusals = static fn(): string => (string) file_get_contents("{$cgroup}/pids.events");
        $none = $refusals();
        $later = Async::run(static fn(): string => $pool->execute(Command::of('echo', 'later'))->stdout());
        Eventually::holds(static fn(): bool => $refusals() !== $none, 'a start was refused');
        file_put_contents("{$cgroup}/pids.max", '20');

        return [$later->await(), \count($pool->runningKeys())];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testIfNoProcessIsAllowedTheResultSaysSo(StartMethod $start): void
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
    public function testIfNoProcessIsAllowedManyCommandsFailTogether(StartMethod $start): void
    {
        $within = $this->withProcesses(20);

        $count = Scale::isFull() ? 2000 : 600; // one by one, failures would take a second each
        self::assertSame(
            $count,
            Host::call(self::class . '::needProcessesInVain', [$start->value, $this->cgroup, $count], $within),
        );
    }

    public static function needProcessesInVain(string $start, string $cgroup, int $count): int
    {
        $pool = new CommandPool(8, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->execute(Command::of('true'));
        file_put_contents("{$cgroup}/pids.max", '1');
        $refused = 0;
        foreach ($pool->run(array_fill(0, $count, Command::of('true'))) as $result) {
            $refused += $result->exitCode === 126 ? 1 : 0;
        }

        return $refused;
    }

    /** @return array{string, string} */
    public static function needOneProcess(string $start, string $cgroup): array
    {
        $pool = new CommandPool(2, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->execute(Command::of('true'));
        file_put_contents("{$cgroup}/pids.max", '1');
        $refused = $pool->execute(Command::of('true'))->describe();
        file_put_contents("{$cgroup}/pids.max", '20');

        return [$refused, $pool->execute(Command::of('echo', 'later'))->stdout()];
    }

    /**
     * @return list<string> wrapper that mounts a file system of 4 MB at the test's directory, for one process and its
     *                      children
     */
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
