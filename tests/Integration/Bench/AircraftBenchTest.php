<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Aircraft\Agents;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;

final class AircraftBenchTest extends TestCase
{
    use RunsAircraftBench;

    private const SPINDLE = ['Spindle, one core', 'Spindle, two cores', 'Spindle, one core, changes announced'];
    private const CRUD = 'Create, read, update, delete: %d clients, %d cycles each';
    private const SLEEP = 'pg_sleep\(1\) 10 times in each request:';

    public function testWhatItMeasuresIsWithCommitsThatReachTheDiskAndItSaysSo(): void
    {
        $options = ['--only', 'crud', '--clients', '2', '--cycles', '2', '--peers', 'pgbench'];
        $process = $this->assertPrintsTables($options, [
            \sprintf(self::CRUD, 2, 2) => [...self::SPINDLE, 'pgbench, 2 connections, the same statements'],
            'Memory over 3 runs' => ['Spindle, one core'],
        ]);

        $settings = '/^Settings fsync on, full_page_writes on, synchronous_commit on, .*shared_buffers \d+MB/m';
        self::assertMatchesRegularExpression($settings, $process->getOutput());
        self::assertMatchesRegularExpression('/^Cores in use \S+/m', $process->getOutput());
    }

    /**
     * @return iterable<string, array{list<string>, array<string, list<string>>}> options; rows with figures by title
     */
    public static function measurements(): iterable
    {
        yield 'sleep' => [['--only', 'sleep', '--clients', '1', '--peers', 'none'], [
            self::SLEEP . ' 1 client,' => ['Spindle, one core'],
            self::SLEEP . ' 2 clients at once' => ['Spindle, one core'],
        ]];
        yield 'bulk' => [['--only', 'bulk', '-n', '2000', '--peers', 'fpm'], [
            '2,000 aircraft imported, and exported' => ['Spindle, one core', ...\array_slice(self::fpmRows(), 0, 1)],
        ]];
    }

    /**
     * @param list<string>                $options
     * @param array<string, list<string>> $tables
     */
    #[DataProvider('measurements')]
    public function testAMeasurementPrintsItsTablesAndEveryAnswerIsRight(array $options, array $tables): void
    {
        $this->assertPrintsTables($options, $tables);
    }

    /** @return iterable<string, array{list<string>, array<string, list<string>>}> the same with all peers */
    public static function comparisons(): iterable
    {
        $rows = self::fpmRows();
        yield 'crud' => [['--only', 'crud', '--clients', '3', '--cycles', '4'], [
            \sprintf(self::CRUD, 3, 4) => [...self::SPINDLE, ...$rows, 'pgbench, 3 connections, the same statements'],
            'Memory over 3 runs' => ['Spindle, one core', ...$rows],
        ]];
        yield 'sleep' => [['--only', 'sleep', '--clients', '1'], [
            self::SLEEP . ' 1 client,' => ['Spindle, one core', ...\array_slice($rows, 0, 2)],
            self::SLEEP . ' 2 clients at once' => ['Spindle, one core', ...\array_slice($rows, 0, 2)],
        ]];
        yield 'bulk' => [['--only', 'bulk', '-n', '20000'], [
            '20,000 aircraft imported, and exported' => ['Spindle, one core', ...\array_slice($rows, 0, 1)],
        ]];
    }

    /**
     * @param list<string>                $options
     * @param array<string, list<string>> $tables
     */
    #[DataProvider('comparisons')]
    #[Group('full')]
    public function testAMeasurementWithAllPeersPrintsItsTablesAndEveryAnswerIsRight(
        array $options,
        array $tables,
    ): void {
        $this->assertPrintsTables($options, $tables);
    }

    public function testARunThatIsInterruptedWhileClientsSendEndsWhatItHasStarted(): void
    {
        $this->assertEndsWhatItHasStarted(['--only', 'crud', '--cycles', '1000000'], 'crud-clients');
    }

    #[Group('full')]
    public function testARunThatIsInterruptedWhileAgentsServeEndsWhatItHasStarted(): void
    {
        $missing = Agents::missing();
        if ($missing !== null) {
            self::markTestSkipped($missing);
        }
        $this->assertEndsWhatItHasStarted(['--only', 'certificates', '--seconds', '1'], 'spindle work --queue');
    }

    /**
     * @param list<string> $options
     * @param string       $until   part of the command line of a process that runs when the benchmark is interrupted
     */
    private function assertEndsWhatItHasStarted(array $options, string $until): void
    {
        self::needsWrk();
        $process = $this->bench('--rounds', '1', '--peers', 'none', ...$options);
        $process->start();
        $isIt = static fn(string $line): bool => str_contains($line, $until);
        $isFound = fn(): bool => array_filter(Processes::mentioning($this->path()), $isIt) !== [];
        Eventually::holds($isFound, "there is {$until}", 60.0);
        $process->signal(\SIGINT);
        $process->wait();

        self::assertSame(130, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame([], Text::names($this->path()));
        self::assertSame([], Processes::mentioning($this->path()));
    }
}
