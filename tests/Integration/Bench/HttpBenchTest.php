<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use Spindle\Bench\Http\Fpm;
use Spindle\Bench\Support\Program;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

/** Shows that the benchmark runs, prints its tables, and ends all its processes. No test here checks speed. */
final class HttpBenchTest extends TidyTestCase
{
    use OwnDirectory;
    use ReadsSeries;

    /** Number of rows with figures of Spindle and of the bare loop, by table title. */
    private const TABLES = [
        'Plain text, each request .*, 5 connections' => [1, 1],
        'Plain text, identical' => [1, 1],
        'JSON' => [1, 1],
        'A POST of 1 KB' => [1, 1],
        'Plain text for one client' => [1, 1],
        'Plain text, each request .*, 32 connections' => [1, 1],
        'Plain text, each request .*, 256 connections' => [1, 1],
        'A handler that waits' => [1, 0],
        'A JSON body of nearly 1 MB' => [1, 0],
        'New connections beside' => [1, 0],
        'Connections that are kept and idle: 500' => [1, 1],
        'Plain text on kept connections for a long time, .*: 1,000 requests' => [1, 0],
        'Healthy clients .*: 5 and 500, a head timeout of 1 s' => [1, 0],
        'Plain text over TLS' => [1, 0],
    ];

    public function testEveryMeasurementPrintsItsTableAndEveryAnswerIsRight(): void
    {
        self::needsWrk();
        $json = $this->path('http.json');
        $process = $this->bench(
            '-n',
            '1000',
            '--rounds',
            '1',
            '--seconds',
            '0.5',
            '--connections',
            '5',
            '--peers',
            'bare',
            '--head-timeout',
            '1',
            '--json',
            $json,
        );
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        foreach (self::TABLES as $title => [$spindle, $bare]) {
            self::assertSame(
                [$spindle, $bare],
                [self::rows($process, $title, 'Spindle'), self::rows($process, $title, 'bare stream_select loop')],
                "{$title}\n{$process->getOutput()}",
            );
        }
        self::assertSame(
            [1, 1],
            [
                self::rows($process, 'CPU-bound work', '1 process'),
                self::rows($process, 'CPU-bound work', '2 processes'),
            ],
            $process->getOutput(),
        );
        self::assertSame(
            [1, 1],
            [
                self::rows($process, 'Plain text, .*: the native response', 'native'),
                self::rows($process, 'Plain text, .*: the native response', 'nyholm/psr7 [\d.]+'),
            ],
            $process->getOutput(),
        );
        self::rightSeries($json);
        self::assertSame(['http.json'], Text::names($this->path()));
    }

    public function testNginxWithFpmStartsFromFilesOfItsOwnAndEndsWithTheBenchmark(): void
    {
        self::needsWrk();
        $missing = Fpm::missing();
        if ($missing !== null) {
            self::markTestSkipped($missing);
        }
        $length = ['--rounds', '1', '--seconds', '0.2', '--connections', '10'];
        $process = $this->bench('--only', 'json,echo,tls', '--peers', 'fpm', ...$length);
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        foreach (['JSON', 'A POST of 1 KB', 'Plain text over TLS'] as $title) {
            self::assertSame(1, self::rows($process, $title, 'nginx \+ PHP-FPM, 2 workers'), $process->getOutput());
        }
        self::assertStringNotContainsString('not all results are right', $process->getOutput());
        self::assertSame([], Text::names($this->path()));
        self::assertSame([], Processes::mentioning($this->path()));
    }

    public function testARunThatIsInterruptedEndsWhatItHasStarted(): void
    {
        self::needsWrk();
        $process = $this->bench('--only', 'text', '--rounds', '1', '--seconds', '600', '--peers', 'none');
        $process->start();
        // Two child processes run while the client sends: the server and wrk.
        Eventually::holds(
            static fn(): bool => \count(Processes::childrenOf((int) $process->getPid())) === 2,
            'the client sends',
            15.0,
        );
        $process->signal(\SIGINT);
        $process->wait();

        self::assertSame(130, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame([], Text::names($this->path()));
    }

    public function testWithoutItsClientItSaysSoAndMeasuresNothing(): void
    {
        $process = $this->bench('--only', 'text', '--rounds', '1');
        $process->setEnv(['PATH' => $this->path()]);
        $process->run();

        self::assertSame(
            [255, "spindle: wrk is not on PATH; it is the client of these benchmarks, and packaged as \"wrk\"\n"],
            [$process->getExitCode(), $process->getErrorOutput()],
        );
    }

    private static function needsWrk(): void
    {
        if (Program::find('wrk') === null) {
            self::markTestSkipped('wrk is not installed');
        }
    }

    /** Returns how many such tables have a row with this label and a figure. */
    private static function rows(Process $process, string $title, string $label): int
    {
        return (int) preg_match_all(
            "~^{$title}.*\n\n(?:\|.*\n)*\| {$label} +\| +-?[\d,.]+ \|~m",
            $process->getOutput(),
        );
    }

    /** Runs the benchmark with its temporary files in the test's directory. */
    private function bench(string ...$arguments): Process
    {
        return new Process(
            [\PHP_BINARY, \dirname(__DIR__, 3) . '/bench/http.php', ...$arguments],
            null,
            ['TMPDIR' => $this->path()] + getenv(),
            timeout: 110.0,
        );
    }
}
