<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;

use function Amp\delay;

/**
 * Time limits.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait EndsCommands
{
    public function testATimeoutEndsTheCommand(): void
    {
        $result = $this->execute(Command::shell('echo before; sleep 20; echo after')->withTimeout(0.2));

        self::assertTrue($result->timedOut);
        self::assertFalse($result->succeeded());
        self::assertFalse($result->cancelled);
        self::assertSame(15, $result->signal);
        self::assertNull($result->exitCode);
        self::assertSame("before\n", $result->stdout());
        self::assertStringContainsString('timed out (0.2 s)', $result->describe());
        self::assertEqualsWithDelta(0.2, $result->duration, 0.5);
        self::assertGreaterThanOrEqual(0.2, $result->duration);
    }

    public function testACommandMayEndItselfWellWhenItsTimeIsOver(): void
    {
        $result = $this->execute(
            Command::shell('trap "echo cleaned; exit 0" TERM; echo $$; while :; do sleep 0.02; done')->withTimeout(0.2),
        );

        self::assertTrue($result->timedOut);
        self::assertSame(0, $result->exitCode);
        self::assertFalse($result->succeeded(), 'it did not run to its own end');
        self::assertStringEndsWith("cleaned\n", $result->stdout());
    }

    public function testACommandThatIgnoresTermIsKilledAfterTheGrace(): void
    {
        $result = $this->pool(1, gracePeriod: 0.3)->execute(
            Command::shell('trap "" TERM; while :; do sleep 0.02; done')->withTimeout(0.2),
        );

        self::assertTrue($result->timedOut);
        self::assertSame(9, $result->signal);
        self::assertGreaterThanOrEqual(0.5, $result->duration);
        self::assertLessThan(3.0, $result->duration);
    }

    public function testWithoutGraceACommandIsKilledAtOnce(): void
    {
        $result = $this->pool(1, gracePeriod: 0.0)->execute(
            Command::shell('trap "" TERM; while :; do sleep 0.02; done')->withTimeout(0.1),
        );

        self::assertSame(9, $result->signal);
    }

    public function testAStoppedCommandStillRuns(): void
    {
        $pool = $this->pool(2);
        $running = Async::run(
            static fn(): CommandResult
                => $pool->execute(Command::shell('kill -STOP $$; exit 5')->withStdout(static fn() => null)),
        );
        $command = 0;
        Eventually::holds(static function () use (&$command): bool {
            foreach (Processes::launchers() as $launcher) {
                foreach (Processes::childrenOf($launcher) as $pid => $_) {
                    $command = Processes::state($pid) === 'T' ? $pid : 0;
                }
            }

            return $command !== 0;
        }, 'the command is stopped');
        self::assertTrue($pool->execute(Command::of('true'))->succeeded(), 'what ends meanwhile is noticed');
        self::assertFalse($running->isComplete());
        posix_kill($command, \SIGCONT);

        self::assertSame(5, $running->await()->exitCode);
    }

    public function testAStoppedCommandIsEndedByItsTimeout(): void
    {
        $result = $this->execute(Command::shell('kill -STOP $$; sleep 20')->withTimeout(0.2));

        self::assertTrue($result->timedOut);
        self::assertSame(15, $result->signal);
    }

    public function testSilenceEndsACommandWithAnIdleTimeout(): void
    {
        $result = $this->execute(
            Command::shell('for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; sleep 20')->withIdleTimeout(0.35),
        );

        self::assertTrue($result->timedOut);
        self::assertSame("1\n2\n3\n4\n5\n", $result->stdout());
        self::assertStringContainsString('no output for 0.35 s', $result->describe());
        self::assertGreaterThanOrEqual(0.7, $result->duration);
        self::assertLessThan(5.0, $result->duration);
    }

    public function testOutputOnStandardErrorIsASignOfLife(): void
    {
        $result = $this->execute(
            Command::shell('for i in 1 2 3 4 5; do echo $i >&2; sleep 0.1; done')->withIdleTimeout(0.4),
        );

        self::assertTrue($result->succeeded());
    }

    public function testWaitingForItsReaderIsNotIdle(): void
    {
        $received = 0;
        $result = $this->execute($this->php('for ($i = 0; $i < 40; ++$i) { fwrite(STDOUT, str_repeat("x", 100_000)); }')
            ->withIdleTimeout(0.3)
            ->withStdout(static function (string $bytes) use (&$received): void {
                if ($received === 0) {
                    delay(0.9);
                }
                $received += \strlen($bytes);
            }));

        self::assertFalse($result->timedOut);
        self::assertTrue($result->succeeded());
        self::assertSame(4_000_000, $received);
    }

    public function testAnImmenseTimeLimitIsNeverReached(): void
    {
        foreach ([1e9, 1e10, 1e12, 1e300] as $seconds) {
            $result = $this->execute(Command::of('sleep', '0.05')->withTimeout($seconds)->withIdleTimeout($seconds));
            self::assertTrue($result->succeeded(), "{$seconds} s");
        }
    }

    public function testManyTimeoutsAtOnceAreEachKept(): void
    {
        $commands = [];
        for ($i = 1; $i <= 30; ++$i) {
            $commands[$i] = Command::of('sleep', '20')->withTimeout($i / 50);
        }
        foreach ($this->pool(30)->run($commands) as $i => $result) {
            self::assertTrue($result->timedOut);
            self::assertGreaterThanOrEqual($i / 50, $result->duration);
            self::assertLessThan($i / 50 + 2.0, $result->duration);
        }
    }
}
