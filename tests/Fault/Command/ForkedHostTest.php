<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use Amp\DeferredCancellation;
use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Integration\Command\AgentPool;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** A fork of a process whose pool runs commands has no effect on that process. */
#[RequiresPhpExtension('pcntl')]
final class ForkedHostTest extends TidyTestCase
{
    use OwnDirectory;

    private const COMMANDS = 12;

    public function testAForkThatEndsInTheLoopCancelsNothing(): void
    {
        self::assertSame(['' => self::COMMANDS], Host::call(self::class . '::forkAndEnd'));
    }

    /** @return array<string, int> errors of the results, with their counts */
    public static function forkAndEnd(): array
    {
        return self::errors(static function (): void {
            exit(0); // destroys the run's generator and the pool
        });
    }

    public function testAForkThatTurnsTheEventLoopTakesNoResults(): void
    {
        $results = Host::call(self::class . '::forkAndTurn', [$this->path('over')], timeout: 20);

        self::assertSame(['' => self::COMMANDS], $results);
    }

    /** @return array<string, int> */
    public static function forkAndTurn(string $over): array
    {
        $owner = getmypid();
        try {
            return self::errors(static function () use ($over, $owner): void {
                while (!file_exists($over) && posix_getppid() === $owner) {
                    delay(0.001);
                }
                exit(0);
            });
        } finally {
            touch($over);
        }
    }

    public function testAForkThatGoesOnWithTheLoopIsRefused(): void
    {
        $said = $this->path('said');
        $results = Host::call(self::class . '::forkAndGoOn', [$said], timeout: 20);

        self::assertSame(['' => self::COMMANDS], $results);
        self::assertStringContainsString('parent process of this fork', (string) file_get_contents($said));
    }

    /** @return array<string, int> */
    public static function forkAndGoOn(string $said): array
    {
        $owner = getmypid();
        try {
            return self::errors(static fn() => null);
        } catch (LauncherException $exception) {
            if ($owner === getmypid()) {
                throw $exception;
            }
            file_put_contents($said, $exception->getMessage());
            exit(0);
        }
    }

    public function testAForkIsToldOfACommandThatAnotherFiberWaitsFor(): void
    {
        $said = $this->path('said');

        self::assertSame("done\n", Host::call(self::class . '::forkBeside', [$said], timeout: 20));
        self::assertStringContainsString('parent process of this fork', (string) file_get_contents($said));
    }

    public static function forkBeside(string $said): string
    {
        $pool = new CommandPool(2);
        $command = Command::shell("while [ ! -e {$said} ]; do sleep 0.05; done; echo done");
        $other = Async::run(static fn(): CommandResult => $pool->execute($command));
        $pool->execute(Command::of('true'));
        if (pcntl_fork() === 0) {
            try {
                $other->await();
                exit(1);
            } catch (LauncherException $exception) {
                file_put_contents("{$said}.new", $exception->getMessage());
                rename("{$said}.new", $said);
                exit(0);
            }
        }

        return $other->await()->stdout();
    }

    public function testAForkRunsNoCommandThatWaitsForItsNextAttempt(): void
    {
        foreach ([0.0, 0.001] as $delay) {
            $said = $this->path("said {$delay}");
            $runs = $this->path("runs {$delay}");

            self::assertSame(2, Host::call(self::class . '::forkDuringAPause', [$said, $runs, $delay], timeout: 20));
            self::assertSame(['refused', 'refused'], file($said, \FILE_IGNORE_NEW_LINES));
            self::assertSame("run\nrun\n", file_get_contents($runs));
        }
    }

    /** The launcher dies during the pause, so a retry in the fork would start another launcher. */
    public static function forkDuringAPause(string $said, string $runs, float $delay): int
    {
        $pool = new CommandPool(1, new RetryPolicy(1, delay: 1.0, jitter: 0.0), new CommandPoolOptions(delay: $delay));
        $command = Command::shell("echo run >> '{$runs}'; exit 1");
        $execution = Async::run(static fn(): CommandResult => $pool->execute($command));
        Eventually::holds(static fn(): bool => $pool->statistics()['retried_total'] === 1, 'it waits');
        posix_kill((int) array_key_first(Processes::childrenOf((int) getmypid())), \SIGKILL);
        Eventually::holds(static fn(): bool => Processes::childrenOf((int) getmypid()) === [], 'no launcher is left');
        $fork = pcntl_fork();
        if ($fork === 0) {
            $outcomes = [
                self::refusal(static fn() => $pool->execute(Command::of('true'))),
                self::refusal(static fn() => $execution->await()),
            ];
            file_put_contents($said, implode("\n", $outcomes));
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($fork, $status);

        return $execution->await()->attempts;
    }

    public function testAForkNeitherEndsNorStartsCommandsThatATransportHas(): void
    {
        $said = $this->path('said');

        self::assertSame(["done\n", "done\n"], Host::call(self::class . '::forkWithTransport', [$said], timeout: 20));
        self::assertSame(array_fill(0, 5, 'refused'), file($said, \FILE_IGNORE_NEW_LINES));
    }

    /** @return list<string> outputs of two commands, of which one waits while a fork tries to end both */
    public static function forkWithTransport(string $said): array
    {
        $transport = new AgentPool();
        $pool = new CommandPool(1, options: new CommandPoolOptions(transport: $transport));
        $command = Command::shell("while [ ! -e {$said} ]; do sleep 0.05; done; echo done");
        $cancellation = new DeferredCancellation();
        $executions = array_map(
            static fn(): Future => Async::run(
                static fn(): CommandResult => $pool->execute($command, $cancellation->getCancellation()),
            ),
            range(1, 2),
        );
        delay(0.05);
        if (pcntl_fork() === 0) {
            $calls = [
                static fn() => $pool->execute(Command::of('true')),
                static fn() => $pool->close(),
                static fn() => $pool->close(new TimeoutCancellation(0.01)),
                static function () use ($cancellation, $executions): void {
                    $cancellation->cancel();
                    $executions[0]->await();
                },
                static fn() => $executions[1]->await(),
            ];
            $outcomes = array_map(self::refusal(...), $calls);
            $pool->kill();
            delay(0.05);
            file_put_contents("{$said}.new", implode("\n", $outcomes));
            rename("{$said}.new", $said);
            posix_kill((int) getmypid(), \SIGKILL);
        }

        return array_map(static fn(Future $execution): string => $execution->await()->stdout(), $executions);
    }

    /** @param \Closure(): mixed $call */
    private static function refusal(\Closure $call): string
    {
        try {
            $call();
        } catch (LauncherException $exception) {
            return str_contains($exception->getMessage(), 'parent process of this fork')
                ? 'refused'
                : $exception->getMessage();
        }

        return 'accepted';
    }

    /**
     * Runs commands and forks after the first result.
     *
     * @param \Closure(): void $inFork
     *
     * @return array<string, int>
     */
    private static function errors(\Closure $inFork): array
    {
        $errors = [];
        $fork = null;
        $pool = new CommandPool(2);
        foreach ($pool->run(array_fill(0, self::COMMANDS, Command::of('sleep', '0.05'))) as $result) {
            $errors[] = (string) $result->error;
            if ($fork === null && ($fork = pcntl_fork()) === 0) {
                $inFork();
            }
        }

        return array_count_values($errors);
    }
}
