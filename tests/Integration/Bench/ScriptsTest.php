<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\LimitProgram;
use Symfony\Component\Process\Process;

/** Shows that the benchmarks run and print their tables. No test here checks speed. */
final class ScriptsTest extends TestCase
{
    /** @return iterable<string, array{list<string>, string}> */
    public static function scripts(): iterable
    {
        yield 'sleep' => [
            ['commands.php', '--workload', 'sleep', '-n', '20', '--rounds', '1', '--peers', 'json-lines'],
            '/^\| ideal: sleep alone +\| +\d/m',
        ];
        yield 'generator' => [['generator.php', '-n', '20'], '/^\| 20 +\| +[\d,]+ \|( +\d+\.\d \|){4}$/m'];
        yield 'idle' => [['idle.php', '--seconds', '1'], '/^\| one command that sleeps \|( +\d+\.\d\d \|){3}$/m'];
        yield 'start and death' => [
            ['tasks.php', '-n', '1', '--rounds', '1', '--only', 'start,death', '--peers', 'none'],
            '/^\| Spindle +\| +\d+\.\d \|(?s:.*)^\| Spindle +\| +\d+\.\d\d \|/m',
        ];
        yield 'arguments' => [
            ['arguments.php', '-n', '2000', '--rounds', '1'],
            '/^\| spindle run -X +\|( +[\d.,… ]+\|){4}$(?s:.*)^\| 2,000 +\|( +\d+\.\d \|){2}$/m',
        ];
        yield 'output' => [
            ['output.php', '--megabytes', '5'],
            '/^\| to a callback \| identical \|.*\n\| to a stream +\| identical \|/m',
        ];
        if (LimitProgram::missing() === null) {
            yield 'shell-line' => [
                ['shell-line.php', '-n', '20', '--rounds', '1'],
                '/^\| Spindle, proc_open +\| +[\d,]+ \|/m',
            ];
            yield 'latency' => [
                ['latency.php', '-n', '20', '--rounds', '1'],
                '/^\| Spindle, proc_open +\| +\d+\.\d{3} \|/m',
            ];
        }
    }

    /** @param list<string> $command */
    #[DataProvider('scripts')]
    public function testItRunsAndPrintsItsTable(array $command, string $line): void
    {
        $process = self::bench(...$command);

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertMatchesRegularExpression($line, $process->getOutput());
        self::assertStringNotContainsString('not all results are right', $process->getOutput());
    }

    public function testTheBenchmarkOfTaskRunnerPrintsARateForEachTest(): void
    {
        $process = self::bench('task-runner.php', '-n20', '-m0', '-p4', '-s0');

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame(1, preg_match_all('/^\tPool size: 4$/m', $process->getOutput()));
        preg_match_all(
            '/^test: (\w+)\n\ttime: \d+\.\d+\n\tthroughput: \d+\.\d{3} TPS$/m',
            $process->getOutput(),
            $matches,
        );
        self::assertSame(['ForLoopExec', 'ProcessPool', 'TaskRunner', 'Spindle', 'SpindleTaskRunner'], $matches[1]);
    }

    private static function bench(string $script, string ...$arguments): Process
    {
        $process = new Process([\PHP_BINARY, \dirname(__DIR__, 3) . "/bench/{$script}", ...$arguments], timeout: 60.0);
        $process->run();

        return $process;
    }
}
