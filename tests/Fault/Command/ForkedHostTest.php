<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandResult;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Host;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;

use function Amp\delay;

/** A fork of a process whose pool runs commands has no effect on that process. */
#[RequiresPhpExtension('pcntl')]
final class ForkedHostTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
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
        $command = Command::shell("while [ ! -e {$said} ]; do sleep 0.01; done; echo done");
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
