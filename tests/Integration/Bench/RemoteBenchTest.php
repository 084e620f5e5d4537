<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

/** Shows that the benchmark runs, prints its tables, and ends all its processes. No test here checks speed. */
final class RemoteBenchTest extends TidyTestCase
{
    use OwnDirectory;
    use ReadsSeries;

    private const CONTESTANTS = ['Spindle, durable', 'Spindle, fast', 'WorkerPool, this machine alone'];

    private const RECOVERY = 'From SIGKILL until the task runs again';

    /** @return iterable<string, array{list<string>, string, list<string>}> options, title, rows with figures */
    public static function measurements(): iterable
    {
        yield 'single' => [['--only', 'single', '-n', '200'], 'One task at a time', self::CONTESTANTS];
        yield 'recovery' => [
            ['--only', 'recovery', '--kills', '1'],
            self::RECOVERY,
            ['a worker is killed', 'an agent and its workers are killed'],
        ];
        $lengths = ['1,000 jobs are queued', '2,000 jobs are queued'];
        yield 'backlog' => [['--only', 'backlog', '--backlog', '2000'], 'A claim of 16 jobs', $lengths];
    }

    /**
     * @param list<string> $options
     * @param list<string> $labels
     */
    #[DataProvider('measurements')]
    public function testAMeasurementPrintsItsTableAndEveryResultIsRight(
        array $options,
        string $title,
        array $labels,
    ): void {
        $this->assertPrintsItsTable($options, $title, $labels);
    }

    public function testTasksInBulkAreMeasuredAndBesideTheDurableTierTheRateOfTheDisk(): void
    {
        $title = 'No-op tasks in bulk, 50 of them';
        $all = $this->assertPrintsItsTable(['--only', 'bulk', '-n', '50'], $title, self::CONTESTANTS);
        $first = static fn(array $series): mixed => \is_array($series['raw']) ? $series['raw'][0] ?? null : null;
        [$durable, $fast] = array_map($first, $all);
        self::assertIsArray($durable);
        self::assertIsArray($fast);
        self::assertGreaterThan(0, $durable['fsync']);
        self::assertArrayNotHasKey('fsync', $fast);
    }

    public function testARunThatIsInterruptedEndsWhatItHasStarted(): void
    {
        $process = $this->bench('--only', 'bulk', '-n', '100000000', '--rounds', '1');
        $process->start();
        Eventually::holds(
            fn(): bool => array_filter(
                Processes::mentioning($this->path()),
                static fn(string $line): bool => str_contains($line, 'remote-script'),
            ) !== [],
            'the script runs',
            20.0,
        );
        $process->signal(\SIGINT);
        $process->wait();

        self::assertSame(130, $process->getExitCode(), $process->getErrorOutput());
        Eventually::holds(
            fn(): bool => Text::names($this->path()) === [] && Processes::mentioning($this->path()) === [],
            'nothing is left',
            10.0,
        );
    }

    /**
     * @param list<string> $options
     * @param list<string> $labels
     *
     * @return list<array<mixed>> the series
     */
    private function assertPrintsItsTable(array $options, string $title, array $labels): array
    {
        $json = $this->path('remote.json');
        $process = $this->bench('--rounds', '1', '--json', $json, ...$options);
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertMatchesRegularExpression('/^Engine   (?:Redis|Valkey) \d+\.\d+/m', $process->getOutput());
        foreach ($labels as $label) {
            $row = "/^{$title}.*\n\n(?:\|.*\n)*\| {$label} +\| +[\d,.]+ \|/m";
            self::assertMatchesRegularExpression($row, $process->getOutput());
        }
        $all = self::rightSeries($json);
        foreach ($all as $series) {
            self::assertIsArray($series['raw']);
            $histograms = array_filter(array_column($series['raw'], 'histogram'), is_array(...));
            self::assertSame($title === self::RECOVERY ? [1] : [], array_map(array_sum(...), $histograms));
        }
        self::assertSame(['remote.json'], Text::names($this->path()));
        self::assertSame([], Processes::mentioning($this->path()));

        return $all;
    }

    /** Runs the benchmark with its temporary files in the test's directory. */
    private function bench(string ...$arguments): Process
    {
        return new Process(
            [\PHP_BINARY, \dirname(__DIR__, 3) . '/bench/remote.php', ...$arguments],
            null,
            ['TMPDIR' => $this->path()] + getenv(),
            timeout: 110.0,
        );
    }
}
