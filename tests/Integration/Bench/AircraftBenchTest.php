<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Aircraft\Agents;
use Spindle\Bench\Http\Fpm;
use Spindle\Bench\Support\Program;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/** That the benchmark runs, says what it should, and ends what it has started; never how fast anything is. */
final class AircraftBenchTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;

    /** @return iterable<string, array{list<string>, array<string, list<string>>}> options, and the rows with figures by title */
    public static function measurements(): iterable
    {
        $fpm = Fpm::missing() === null;
        $peers = $fpm ? ['nginx \+ PHP-FPM, the same handlers, \d+ workers', 'nginx \+ PHP-FPM, the same handlers, preloaded, \d+ workers'] : [];
        $all = $fpm ? [...$peers, 'nginx \+ PHP-FPM, plain PHP, \d+ workers'] : [];
        yield 'crud' => [['--only', 'crud', '--clients', '3', '--cycles', '4'], [
            'Create, read, update, delete: 3 clients, 4 cycles each' => ['Spindle, one core', 'Spindle, two cores', 'Spindle, one core, changes announced', ...$all, 'pgbench, 3 connections, the same statements'],
            'Memory over 3 runs' => ['Spindle, one core', ...$all],
        ]];
        yield 'latency' => [['--only', 'latency', '--clients', '2', '--seconds', '0.5', '--peers', 'fpm-plain'], [
            'Create, read, update, delete with 5 ms' => ['Spindle, one core', ...\array_slice($all, 2)],
            'Create, read, update, delete with 50 ms' => ['Spindle, one core', ...\array_slice($all, 2)],
            "What FPM would need for Spindle's rate at 50 ms" => \array_slice($all, 2),
        ]];
        yield 'sleep' => [['--only', 'sleep', '--clients', '1'], [
            'pg_sleep\(1\) 10 times in each request: 1 client,' => ['Spindle, one core', ...$peers],
            'pg_sleep\(1\) 10 times in each request: 2 clients at once' => ['Spindle, one core', ...$peers],
        ]];
        yield 'certificates' => [['--only', 'certificates', '--seconds', '0.5', '--peers', 'fpm'], [
            '200 light requests a second' => ['Spindle, workers on its core', 'Spindle, workers on both cores', ...(Agents::missing() === null ? ['Spindle, two agents'] : []), ...\array_slice($peers, 0, 1)],
        ]];
        yield 'bulk' => [['--only', 'bulk', '-n', '20000'], ['20,000 aircraft imported, and exported' => ['Spindle, one core', ...\array_slice($peers, 0, 1)]]];
    }

    /**
     * @param list<string>                $options
     * @param array<string, list<string>> $tables
     */
    #[DataProvider('measurements')]
    public function testAMeasurementPrintsItsTablesAndEveryAnswerIsRight(array $options, array $tables): void
    {
        self::needsWrk();
        [$json, $html] = [$this->path('aircraft.json'), $this->path('aircraft.html')];
        $process = $this->bench('--rounds', '1', '--json', $json, '--html', $html, ...$options);
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        foreach ($tables as $title => $labels) {
            foreach ($labels as $label) {
                self::assertMatchesRegularExpression("/^{$title}.*\n\n(?:\|.*\n)*\| {$label} +\| +-?[\d,.]+ \|/m", $process->getOutput());
            }
        }
        $data = json_decode((string) file_get_contents($json), true);
        self::assertIsArray($data);
        self::assertIsArray($data['series']);
        self::assertNotSame([], $data['series']);
        foreach ($data['series'] as $series) {
            self::assertIsArray($series);
            self::assertSame([], $series['problems'], json_encode($series, \JSON_THROW_ON_ERROR));
            self::assertIsArray($series['raw']);
            self::assertSame([true], array_column($series['raw'], 'right'));
        }
        self::assertIsAReport((string) file_get_contents($html), array_keys($tables));
        self::assertSame(['aircraft.html', 'aircraft.json'], Text::names($this->path()));
        self::assertSame([], $this->itsProcesses());
    }

    public function testWhatItMeasuresIsWithCommitsThatReachTheDiskAndItSaysSo(): void
    {
        self::needsWrk();
        $process = $this->bench('--only', 'crud', '--clients', '1', '--cycles', '1', '--rounds', '1', '--peers', 'none');
        $process->run();

        self::assertMatchesRegularExpression('/^Settings fsync on, full_page_writes on, synchronous_commit on, .*shared_buffers \d+MB/m', $process->getOutput());
        self::assertMatchesRegularExpression('/^Cores in use \S+/m', $process->getOutput());
    }

    /** @return iterable<string, array{list<string>, string}> options, and what the command line has of a process */
    public static function longRuns(): iterable
    {
        yield 'while clients send' => [['--only', 'crud', '--cycles', '1000000'], 'crud-clients'];
        if (Agents::missing() === null) {
            yield 'while agents serve' => [['--only', 'certificates', '--seconds', '1'], 'spindle work --queue'];
        }
    }

    /** @param list<string> $options */
    #[DataProvider('longRuns')]
    public function testARunThatIsInterruptedEndsWhatItHasStarted(array $options, string $until): void
    {
        self::needsWrk();
        $process = $this->bench('--rounds', '1', '--peers', 'none', ...$options);
        $process->start();
        Eventually::holds(fn(): bool => array_filter($this->itsProcesses(), static fn(string $line): bool => str_contains($line, $until)) !== [], "there is {$until}", 60.0);
        $process->signal(\SIGINT);
        $process->wait();

        self::assertSame(130, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame([], Text::names($this->path()));
        self::assertSame([], $this->itsProcesses());
    }

    protected function deadline(): int
    {
        return 150;
    }

    private static function needsWrk(): void
    {
        if (Program::find('wrk') === null) {
            self::markTestSkipped('wrk is not installed');
        }
    }

    /** @param list<string> $titles patterns */
    private static function assertIsAReport(string $html, array $titles): void
    {
        $document = new \DOMDocument();
        self::assertTrue($document->loadXML(substr($html, \strlen('<!DOCTYPE html>'))), 'it is well-formed');
        self::assertGreaterThan(0, $document->getElementsByTagName('svg')->length);
        self::assertSame(0, preg_match('~<script|<link|<img|\b(?:src|href)=|@import|url\(~i', $html));
        self::assertSame(['http://www.w3.org/2000/svg'], array_values(array_unique(preg_match_all('~https?://[^"\s<]+~', $html, $addresses) > 0 ? $addresses[0] : [])));
        foreach ($titles as $title) {
            self::assertMatchesRegularExpression("~<h2>{$title}~", html_entity_decode($html, \ENT_QUOTES | \ENT_XML1));
        }
    }

    /** @return array<int, string> command lines: its directory is in the environment, and in those of nginx and FPM, which overwrite that */
    private function itsProcesses(): array
    {
        $lines = [];
        foreach (array_filter(Text::names('/proc'), ctype_digit(...)) as $pid) {
            $line = Processes::commandLine((int) $pid);
            if (str_contains($line . @file_get_contents("/proc/{$pid}/environ"), $this->path())) {
                $lines[(int) $pid] = $line;
            }
        }

        return $lines;
    }

    /** Its temporary files are in the directory of the test. */
    private function bench(string ...$arguments): Process
    {
        return new Process([\PHP_BINARY, \dirname(__DIR__, 3) . '/bench/aircraft.php', ...$arguments], null, ['TMPDIR' => $this->path()] + getenv(), timeout: 140.0);
    }
}
