<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Integration\Runner\Fixture\Leaves;
use Spindle\Tests\Processes;
use Spindle\Tests\Runner\ClassRun;
use Spindle\Tests\Runner\QuietLock;
use Spindle\Tests\Runner\Sandbox;
use Spindle\Tests\Runner\TestClass;
use Spindle\Tests\SharedMemory;
use Symfony\Component\Process\Process;

/** Tests the runner of ./test with fixture classes. */
final class TestRunTest extends TestCase
{
    use EndsInTime;

    private const FIXTURES = 'tests/Integration/Runner/Fixture';
    private const TIMEOUT = 25.0;

    public function testARunOfPassingClassesEndsWithTheirSum(): void
    {
        $run = self::runOf('Passes', 'Groups');

        self::assertSame(0, $run->getExitCode(), $run->getOutput() . $run->getErrorOutput());
        self::assertStringEndsWith("\nOK (4 tests, 4 assertions)\n", $run->getOutput());
    }

    public function testAFailureIsPrintedAndFailsTheRun(): void
    {
        $run = self::runOf('Passes', 'Fails');

        self::assertSame(1, $run->getExitCode());
        self::assertStringEndsWith("\nTests: 4, Assertions: 4, Failures: 1.\n", $run->getOutput());
        self::assertStringContainsString('the message of the failure', $run->getOutput());
        self::assertStringContainsString('written to standard error', $run->getOutput());
        self::assertStringContainsString('FAILED: Integration/Runner/Fixture/Fails: ', $run->getOutput());
    }

    /** @param list<string> $options */
    #[TestWith([[], 1])]
    #[TestWith([['--repeat-failed'], 0])]
    public function testAFailedClassThatPassesAloneFailsTheRunUnlessItIsRepeated(array $options, int $status): void
    {
        $folder = \dirname(__DIR__, 3) . '/.cache/tests'; // each run of a class has its own /tmp
        is_dir($folder) || mkdir($folder, recursive: true);
        $file = "{$folder}/failed-" . bin2hex(random_bytes(6));
        putenv("SPINDLE_LEFT={$file}");
        $run = self::runOf('FailsOnce', ...$options);
        putenv('SPINDLE_LEFT');
        is_file($file) && unlink($file);

        self::assertSame($status, $run->getExitCode(), $run->getOutput());
        self::assertSame(
            $status === 0,
            str_contains($run->getOutput(), "\nPASSED ONLY ALONE: Integration/Runner/Fixture/FailsOnce\n"),
        );
    }

    #[TestWith(['Exits', 'testExits'])]
    #[TestWith(['IsKilled', 'testIsKilled'])]
    #[TestWith(['Pretends', 'testPretends'])]
    #[TestWith(['HasAForkThatGoesOn', 'testForks'])]
    #[TestWith(['KillsItsGroup', 'testKillsItsGroup'])]
    public function testAClassThatDoesNotReachItsEndFailsTheRun(string $class, string $test): void
    {
        $run = self::runOf('Passes', $class);

        self::assertSame(1, $run->getExitCode(), $run->getOutput());
        self::assertStringContainsString("Fixture\\{$class}::{$test}", $run->getOutput());
        self::assertStringContainsString("FAILED: Integration/Runner/Fixture/{$class}: ", $run->getOutput());
    }

    public function testTestsOfTheGroupFullRunOnlyInFullAndQuietOnesLast(): void
    {
        $plain = self::runOf('Groups');
        $full = self::runOf('--full', 'Groups');

        self::assertStringContainsString("\nOK (2 tests, ", $plain->getOutput());
        self::assertStringContainsString("\nOK (3 tests, ", $full->getOutput());
        self::assertMatchesRegularExpression(
            '~1/2 .*/Groups \(1 tests\)\n.*2/2 .*/Groups \(quiet\) \(1 tests\)\n~',
            $plain->getOutput(),
        );
    }

    public function testAClassThatHangsIsKilledAtItsDeadlineWithAllThatItStarted(): void
    {
        $left = self::leavesToken();
        $class = new TestClass(self::FIXTURES . '/Leaves.php', 1, false);
        $run = new ClassRun($class, Sandbox::detect(), false, 2.0);
        $result = null;
        Eventually::holdsByItself(static function () use ($run, &$result): bool {
            $result = $run->poll();

            return $result !== null;
        }, 'the class has ended', self::TIMEOUT);

        self::assertNotNull($result);
        self::assertFalse($result->passed());
        self::assertSame(
            'The class did not end within 2 s; killed in test 1 of 1, ' . Leaves::class . '::testLeavesMuchAndHangs',
            $result->problem,
        );
        self::assertNothingLeft($left);
    }

    #[TestWith([\SIGKILL, 137])]
    #[TestWith([\SIGINT, 130])]
    #[TestWith([\SIGTERM, 143])]
    public function testARunThatIsEndedLeavesNothing(int $signal, int $status): void
    {
        if (!Sandbox::detect()->isAvailable()) {
            self::markTestSkipped('Without namespaces, an ended run can leave processes and shared memory');
        }
        $left = self::leavesToken();
        $segments = SharedMemory::segments();
        $run = self::start('Leaves');
        Eventually::holdsByItself(
            static fn(): bool => preg_grep('/^\w sleep 600$/D', self::processes($left)) !== [],
            'the test has begun',
            self::TIMEOUT,
        );

        $run->signal($signal);
        $run->wait();

        self::assertSame($status, $run->getExitCode());
        self::assertNothingLeft($left);
        self::assertSame($segments, SharedMemory::segments());
    }

    /** @param list<string> $arguments */
    #[TestWith([['--shards', 'x'], 'error: --shards needs a number from 1 to 64, not "x"'])]
    #[TestWith([['--shards'], 'error: --shards needs a number from 1 to 64, not ""'])]
    #[TestWith([['--parallel'], 'error: Unknown option --parallel'])]
    #[TestWith([['tests/Nowhere'], 'error: There is no test file or folder tests/Nowhere'])]
    public function testWrongArgumentsAreRefused(array $arguments, string $message): void
    {
        $run = self::process($arguments);
        $run->run();

        self::assertSame(2, $run->getExitCode());
        self::assertStringStartsWith("{$message}\n", $run->getErrorOutput());
        self::assertSame('', $run->getOutput());
    }

    public function testARunWithoutTestsFails(): void
    {
        $run = self::process(['tests/Unit/Worker/../../../docs']);
        $run->run();

        self::assertNotSame(0, $run->getExitCode());
    }

    public function testQuietTestsWaitForOtherRuns(): void
    {
        $busy = new QuietLock(__FILE__);
        $busy->share(static fn() => null, static fn(): bool => false);
        $program = 'require "vendor/autoload.php"; $lock = new ' . QuietLock::class . '($argv[1]);'
            . '$no = fn() => false;'
            . '$lock->share($no, $no); echo "shared "; $lock->acquireAlone(function () { echo "waits "; }, $no);'
            . ' echo "alone";';
        $other = new Process([\PHP_BINARY, '-r', $program, __FILE__], timeout: self::TIMEOUT);
        $other->start();
        $other->waitUntil(static fn(string $type, string $output): bool => str_contains($output, 'waits'));
        self::assertTrue($other->isRunning());

        unset($busy);
        $other->wait();

        self::assertSame('shared waits alone', $other->getOutput());
    }

    private static function runOf(string ...$classesAndOptions): Process
    {
        $run = self::start(...$classesAndOptions);
        $run->wait();

        return $run;
    }

    private static function start(string ...$classesAndOptions): Process
    {
        $arguments = array_map(
            static fn(string $argument): string
                => str_starts_with($argument, '--') ? $argument : self::FIXTURES . "/{$argument}.php",
            $classesAndOptions,
        );
        $run = self::process(array_values($arguments));
        $run->start();

        return $run;
    }

    /** @param list<string> $arguments */
    private static function process(array $arguments): Process
    {
        $environment = [
            'SPINDLE_TEST_RUN' => 'another',
            'SPINDLE_TEST_FULL' => false,
            'SPINDLE_LEFT' => getenv('SPINDLE_LEFT'),
        ];

        return new Process(
            [\PHP_BINARY, 'tests/Runner/main.php', ...$arguments],
            env: $environment,
            timeout: self::TIMEOUT,
        );
    }

    private static function leavesToken(): string
    {
        $token = (string) random_int(100_000_000, 999_999_999);
        putenv("SPINDLE_LEFT={$token}");

        return $token;
    }

    private static function assertNothingLeft(string $token): void
    {
        putenv('SPINDLE_LEFT');
        Eventually::holdsByItself(static fn(): bool => self::processes($token) === [], 'no process is left');
        self::assertSame([], glob(sys_get_temp_dir() . "/left-{$token}"));
        self::assertSame([], glob(sys_get_temp_dir() . '/spindle-tests-*'));
    }

    /** @return array<int, string> state and command line, by pid */
    private static function processes(string $token): array
    {
        return Processes::withVariable('SPINDLE_LEFT', $token);
    }
}
