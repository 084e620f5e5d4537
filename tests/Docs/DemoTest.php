<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

final class DemoTest extends TidyTestCase
{
    private const AIRCRAFT = '/examples/aircraft/demo.php';

    private Workplace $workplace;

    protected function setUp(): void
    {
        $this->workplace = new Workplace();
    }

    protected function tearDown(): void
    {
        $this->workplace->remove();
    }

    public function testTheDemoDoesRealWorkAndComparesItWithAPlainLoop(): void
    {
        $process = $this->workplace->php(Workplace::project() . '/examples/demo/demo.php', '--limit=12');

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertStringContainsString('36 commands in ', $process->getOutput());
        self::assertStringContainsString('12 files summed', $process->getOutput());
        self::assertMatchesRegularExpression(
            '/would take [\d.]+ s for all: [\d.]+ times as long/',
            $process->getOutput(),
        );
    }

    public function testTheDemoOfManyMachinesLosesNothingWithAnAgent(): void
    {
        $process = $this->workplace->php(Workplace::project() . '/examples/demo/remote.php', '--tasks=300', '--json');

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        $result = json_decode($process->getOutput(), true, flags: \JSON_THROW_ON_ERROR);
        self::assertIsArray($result);
        self::assertSame([300, 300, 0], [$result['tasks'], $result['results'], $result['wrong_or_twice']]);
        self::assertGreaterThan(0, $result['by_the_first_agent']);
        self::assertGreaterThan(0, $result['by_the_second_agent']);
    }

    public function testTheDemoOfTheAircraftApplicationChecksItselfAndEnds(): void
    {
        $process = $this->workplace->php(
            Workplace::project() . self::AIRCRAFT,
            '--check',
            '--json',
            '--aircraft=5',
            '--clients=5',
        );

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        $result = json_decode($process->getOutput(), true, flags: \JSON_THROW_ON_ERROR);
        self::assertIsArray($result);
        self::assertSame(
            ['clients', 'seconds', 'cycles', 'cycles_per_second', 'p50_ms', 'p99_ms', 'errors', 'first_error'],
            array_keys($result),
        );
        self::assertSame([0, null], [$result['errors'], $result['first_error']]);
        self::assertGreaterThan(0, $result['cycles']);
        self::assertMatchesRegularExpression('~^PostgreSQL \d\S+ .*has 5 aircraft~m', $process->getErrorOutput());
        self::assertStringContainsString("\nAll of it works.\n", $process->getErrorOutput());
        self::assertStringNotContainsString("\e", $process->getErrorOutput(), 'colours and progress are for terminals');
        self::assertDirectoryDoesNotExist(self::cluster($process->getErrorOutput()));
    }

    public function testTheDemoOfTheAircraftApplicationHasHelp(): void
    {
        $process = $this->workplace->php(Workplace::project() . self::AIRCRAFT, '--help');

        self::assertSame(0, $process->getExitCode());
        self::assertStringContainsString("\nExamples:\n  ./demo aircraft\n", $process->getOutput());
        self::assertSame('', $process->getErrorOutput());
    }

    public function testTheDemoOfTheAircraftApplicationRefusesWhatItDoesNotKnow(): void
    {
        foreach ([
            '--lisen=1' => 'The "--lisen" option does not exist',
            '--clients=none' => '--clients needs a whole number from 1 to 1000000, not "none"',
            'more' => 'No arguments expected',
        ] as $argument => $message) {
            $process = $this->workplace->php(Workplace::project() . self::AIRCRAFT, $argument);

            self::assertSame(64, $process->getExitCode(), $argument);
            self::assertStringStartsWith("error: {$message}", $process->getErrorOutput());
        }
    }

    public function testTheDemoOfTheAircraftApplicationTellsWhatToDoAboutAPortThatIsTaken(): void
    {
        $taken = Streams::server();
        $address = (string) stream_socket_get_name($taken, false);
        foreach (['listen', 'admin'] as $option) {
            $process = $this->workplace->php(
                Workplace::project() . self::AIRCRAFT,
                '--check',
                "--{$option}={$address}",
            );

            self::assertSame(1, $process->getExitCode());
            self::assertMatchesRegularExpression(
                "~^error: {$address} can't be used: Address already in use\. Give another address:"
                . " ./demo aircraft --{$option} 127\.0\.0\.1:\d+$~m",
                $process->getErrorOutput(),
            );
        }
    }

    #[RequiresPhpExtension('pcntl')]
    public function testTheDemoOfTheAircraftApplicationEndsByCtrlC(): void
    {
        $process = $this->runningDemo();
        // like a terminal, which signals all processes in its foreground
        posix_kill(-(int) $process->getPid(), \SIGINT);

        self::assertSame(0, $process->wait(), $process->getErrorOutput());
        self::assertStringEndsWith("\nStopping ...\n", $process->getOutput());
        self::assertSame('', $process->getErrorOutput());
        self::assertDirectoryDoesNotExist(self::cluster($process->getOutput()));
    }

    public function testNothingOfTheDemoOfTheAircraftApplicationSurvivesIt(): void
    {
        $process = $this->runningDemo();
        $process->signal(\SIGKILL);
        $process->wait();

        $cluster = self::cluster($process->getOutput());
        Eventually::holds(static function () use ($cluster): bool {
            clearstatcache();

            return !is_dir($cluster) && self::processesOf($cluster) === [];
        }, 'the cluster is gone', 20);
        self::assertSame(1, preg_match('~ http://(\S+)/openapi\.json~', $process->getOutput(), $match));
        Eventually::holds(
            static fn(): bool => !Streams::accepts("tcp://{$match[1]}"),
            'the server is gone',
            20,
        );
    }

    /** Starts the demo in a process group of its own, whose id is its pid. */
    private function runningDemo(): Process
    {
        $process = new Process(
            [
                'setsid',
                \PHP_BINARY,
                Workplace::project() . self::AIRCRAFT,
                '--listen=127.0.0.1:0',
                '--admin=127.0.0.1:0',
                '--aircraft=100',
                '--clients=2',
                '--seconds=1',
            ],
            timeout: 60,
        );
        $process->start();
        Eventually::holds(
            static fn(): bool
                => str_contains($process->getOutput(), "\nCtrl-C stops all of this") || !$process->isRunning(),
            'the demo runs',
            30,
        );
        self::assertTrue($process->isRunning(), $process->getErrorOutput());

        return $process;
    }

    private static function cluster(string $output): string
    {
        self::assertSame(1, preg_match("~ psql 'host=(\S+/spindle-postgres-\w+) ~", $output, $match), $output);

        return $match[1];
    }

    /** @return list<string> ids of processes with the folder in their command line */
    private static function processesOf(string $cluster): array
    {
        return array_values(array_filter(
            Text::names('/proc'),
            static fn(string $name): bool => str_contains(Processes::commandLine((int) $name), $cluster),
        ));
    }
}
