<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;
use Spindle\Internal\UnlinkedFile;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

/** When the process of a pool ends, in any way, everything that the pool has started ends. */
final class ParentDeathTest extends TidyTestCase
{
    use OwnDirectory;

    private const VARIABLE = 'SPINDLE_TEST_HOST';

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAfterASigkillAtAnyMomentNothingLivesOnForASecond(StartMethod $start): void
    {
        mt_srand(Scale::seed());
        mkdir($this->path('temporary'));
        foreach (Scale::rounds(atLeast: 5) as $_) {
            $this->killAtARandomMoment($start, mt_rand(0, 250_000), 'work');
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testProcessesThatStartEachOtherAndEndAtOnceDoNotEscape(StartMethod $start): void
    {
        mt_srand(Scale::seed());
        mkdir($this->path('temporary'));
        foreach (Scale::rounds(atLeast: 3) as $_) {
            $this->killAtARandomMoment($start, mt_rand(200_000, 300_000), 'startChains', 4);
        }
    }

    private function killAtARandomMoment(StartMethod $start, int $microseconds, string $what, int $seconds = 1): void
    {
        $mark = bin2hex(random_bytes(8));
        $host = Host::start(
            self::class . "::{$what}",
            [$start->value, $this->path('temporary')],
            environment: [self::VARIABLE => $mark],
        );
        usleep($microseconds); // varies the moment of the kill
        $host->signal(\SIGKILL);
        $left = fn(): array
            => [...Processes::withVariable(self::VARIABLE, $mark), ...Text::names($this->path('temporary'))];
        $rest = $left();
        for ($end = hrtime(true) + $seconds * 1_000_000_000; $rest !== [] && hrtime(true) < $end; $rest = $left()) {
            usleep(10_000);
        }
        self::assertSame([], $rest, "{$seconds} s after it was killed {$microseconds} microseconds from its start");
        $host->wait();
    }

    /** Starts chains of processes that live so briefly that a search may find neither a process nor its child. */
    public static function startChains(string $start, string $temporary): void
    {
        $chain = 'h() { sleep 0.003; if [ $1 -gt 0 ]; then h $(($1-1)) & else exec sleep 100; fi; };'
            . ' h 300 & wait; sleep 1';
        $pool = new CommandPool(
            4,
            0,
            new CommandPoolOptions(startMethod: StartMethod::from($start), temporaryDirectory: $temporary),
        );
        foreach ($pool->run(array_fill(0, 100, Command::shell($chain))) as $_) {
            continue;
        }
    }

    public static function work(string $start, string $temporary): void
    {
        $lines = [
            'true',
            'sleep 100',
            'trap "" TERM; sleep 100 & wait',
            '(setsid sleep 100 &); sleep 0.01',
            '(setsid sh -c \'trap "" TERM; while :; do sleep 1; done\' &); sleep 0.02',
            'head -c 3000000 /dev/zero',
        ];
        $commands = static function () use ($lines): \Generator {
            for ($i = 0; ; ++$i) {
                yield Command::shell($lines[$i % \count($lines)])->withTimeout(0.5);
            }
        };
        $pool = new CommandPool(
            12,
            0,
            new CommandPoolOptions(startMethod: StartMethod::from($start), temporaryDirectory: $temporary),
        );
        foreach ($pool->run($commands()) as $_) {
            continue;
        }
    }

    /** A name remains when the kill comes between creating and unlinking the file. */
    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testTheNameOfATemporaryFileThatAKilledProcessLeftIsRemoved(StartMethod $start): void
    {
        mkdir($this->path('temporary'));
        $names = ['foreign', 'spindle-0123456789abcdef01234567'];
        array_map(fn(string $name): bool => touch($this->path("temporary/{$name}")), $names);
        $host = Host::start(self::class . '::wait', [$start->value, $this->path('temporary')]);
        Eventually::holdsByItself(fn(): bool => is_file($this->path('prefix')), 'its commands run');

        touch(file_get_contents($this->path('prefix')) . '89abcdef');
        $host->signal(\SIGKILL);
        Eventually::holdsByItself(
            fn(): bool => Text::names($this->path('temporary')) === $names,
            'only what is not its own is left',
            1.0,
        );
        $host->wait();
    }

    public static function wait(string $start, string $temporary): void
    {
        $pool = new CommandPool(
            2,
            0,
            new CommandPoolOptions(startMethod: StartMethod::from($start), temporaryDirectory: $temporary),
        );
        foreach ($pool->run([Command::of('true'), Command::of('sleep', '100')]) as $_) {
            file_put_contents("{$temporary}/../prefix.new", UnlinkedFile::prefix($temporary));
            rename("{$temporary}/../prefix.new", "{$temporary}/../prefix");
        }
    }

    /** @return iterable<string, array{StartMethod, string, int}> */
    public static function endings(): iterable
    {
        foreach (LauncherPhp::startMethods() as $name => [$start]) {
            yield "{$name}, exit" => [$start, 'leave', 3];
            yield "{$name}, an uncaught exception" => [$start, 'throw', 255];
            yield "{$name}, a fatal error" => [$start, 'exhaust', 255];
            yield "{$name}, SIGTERM" => [$start, 'terminate', 143];
        }
    }

    #[\PHPUnit\Framework\Attributes\DataProvider('endings')]
    public function testAfterAnotherEndingNothingLivesOnEither(StartMethod $start, string $ending, int $exitCode): void
    {
        $mark = bin2hex(random_bytes(8));
        $host = Host::start(self::class . '::end', [$start->value, $ending], environment: [self::VARIABLE => $mark]);

        Eventually::holdsByItself(static fn(): bool => !$host->isRunning(), 'it has ended', 10.0);
        self::assertSame($exitCode, $host->getExitCode());
        Eventually::holdsByItself(
            static fn(): bool => Processes::withVariable(self::VARIABLE, $mark) === [],
            'nothing is left',
            1.0,
        );
    }

    public static function end(string $start, string $ending): void
    {
        ini_set('display_errors', '0');
        ini_set('memory_limit', '64M');
        $pool = new CommandPool(4, 0, new CommandPoolOptions(gracePeriod: 0.2, startMethod: StartMethod::from($start)));
        $commands = [
            Command::of('true'),
            Command::of('sleep', '100'),
            Command::shell('trap "" TERM; sleep 100 & wait'),
            Command::shell('(setsid sleep 100 &); sleep 100'),
        ];
        foreach ($pool->run($commands) as $_) {
            match ($ending) {
                'leave' => exit(3),
                'throw' => throw new \RuntimeException('the end'),
                'exhaust' => str_repeat('x', 1 << 40),
                default => posix_kill((int) getmypid(), \SIGTERM),
            };
        }
    }

    public function testAForkOfTheProcessKeepsNothingAlive(): void
    {
        if (!LauncherPhp::hasFfi()) {
            self::markTestSkipped('Only the launcher with FFI watches the process itself');
        }
        $mark = bin2hex(random_bytes(8));
        $host = Host::start(self::class . '::fork', [$this->path('fork')], environment: [self::VARIABLE => $mark]);
        Eventually::holdsByItself(fn(): bool => is_file($this->path('fork')), 'it has forked');
        $host->signal(\SIGKILL);
        $fork = (int) file_get_contents($this->path('fork'));
        try {
            Eventually::holdsByItself(
                static fn(): bool => array_keys(Processes::withVariable(self::VARIABLE, $mark)) === [$fork],
                'only the fork is left',
                1.0,
            );
        } finally {
            posix_kill($fork, \SIGKILL);
        }
        $host->wait();
    }

    public static function fork(string $file): void
    {
        $pool = new CommandPool(2, 0, new CommandPoolOptions(startMethod: StartMethod::PosixSpawn));
        foreach ($pool->run([Command::of('true'), Command::of('sleep', '100'), Command::of('sleep', '100')]) as $_) {
            $fork = pcntl_fork();
            if ($fork === 0) {
                pcntl_exec('/bin/sleep', ['60']); // keeps descriptors without close-on-exec
            }
            file_put_contents("{$file}.new", (string) $fork);
            rename("{$file}.new", $file);
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testTheEndOfAForkLeavesThePoolAlone(StartMethod $start): void
    {
        self::assertSame([true, "still here\n"], Host::call(self::class . '::endFork', [$start->value]));
    }

    /** @return array{bool, string} */
    public static function endFork(string $start): array
    {
        $pool = new CommandPool(2, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->execute(Command::of('true'));
        $fork = pcntl_fork();
        if ($fork === 0) {
            exit(0); // destroys its copy of the pool
        }
        pcntl_waitpid($fork, $status);

        return [$status === 0, $pool->execute(Command::of('echo', 'still here'))->stdout()];
    }
}
