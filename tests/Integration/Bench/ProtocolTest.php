<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Bench\Aircraft\Contestant as AircraftContestant;
use Spindle\Bench\Aircraft\Measurement as AircraftMeasurement;
use Spindle\Bench\Contestant\Contestants;
use Spindle\Bench\Http\Contestant as HttpContestant;
use Spindle\Bench\Http\Measurement as HttpMeasurement;
use Spindle\Bench\Http\Site;
use Spindle\Bench\Http\Work;
use Spindle\Bench\Postgres\Contestant as PostgresContestant;
use Spindle\Bench\Postgres\Job;
use Spindle\Bench\Postgres\Measurement as PostgresMeasurement;
use Spindle\Bench\Postgres\Shape;
use Spindle\Bench\Postgres\Variant;
use Spindle\Bench\Remote\Measurement as RemoteMeasurement;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Core;
use Spindle\Bench\Support\Line;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Series;
use Spindle\Bench\Tasks\TaskContestants;
use Spindle\Bench\Tasks\TaskMeasurement;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Testing\TemporaryPostgresException;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

/**
 * Pins the names that `--against` and readers of raw data rely on: programs, contestants, options and JSON keys.
 *
 * A new name is added here. Changing or removing a name breaks readers: keep the old name beside the new one.
 */
final class ProtocolTest extends TidyTestCase
{
    use OwnDirectory;

    /** Programs that run with the Spindle of any checkout. */
    private const PROGRAMS = [
        'contestant.php', 'task-contestant.php', 'postgres-contestant.php', 'http-contestant.php', 'http-app.php',
        'remote-agent.php', 'remote-script.php', 'Aircraft/app.php', 'Aircraft/timed-app.php',
    ];

    public function testProgramsHaveTheirNames(): void
    {
        foreach (self::PROGRAMS as $program) {
            self::assertFileExists(self::bench($program));
        }
        self::assertSame(
            ['SPINDLE_BENCH_CHECKOUT', 3],
            array_map((new \ReflectionClass(Checkout::class))->getConstant(...), ['VARIABLE', 'MISFIT']),
        );
        $autoloader = (string) file_get_contents(self::bench('autoload.php'));
        self::assertStringContainsString("getenv('" . Checkout::VARIABLE . "')", $autoloader);
    }

    public function testContestantsHaveTheirNames(): void
    {
        foreach (['spindle', 'spindle-posix_spawn', 'spindle-proc_open', 'drop-in'] as $name) {
            self::assertArrayHasKey($name, Contestants::all());
        }
        $names = ['process', 'process-map', 'fork', 'fork-map', 'thread', 'thread-map', 'tasks'];
        foreach ($names as $name) {
            self::assertStringStartsWith('Spindle', TaskContestants::named("spindle-{$name}")->label);
        }
        foreach (['pool', 'connections'] as $name) {
            self::assertTrue(PostgresContestant::from($name)->isSpindle());
        }
        self::assertContains('spindle', array_column(HttpContestant::cases(), 'value'));
        foreach (['spindle', 'spindle-2', 'spindle-events'] as $name) {
            self::assertFalse(AircraftContestant::from($name)->isFpm());
        }
    }

    public function testMeasurementsHaveTheirNames(): void
    {
        $names = [
            'bulk single objects mix cpu echo memory start death' => TaskMeasurement::cases(),
            'select cells far unit update rows parameter stream copy sleep gaps cancel acquire'
                => PostgresMeasurement::cases(),
            'text text-same json echo one connections two wait idle soak slow tls psr7 collide crowd pieces pieces-gzip'
                . ' pieces-large'
                => HttpMeasurement::cases(),
            'text json echo wait burn nyholm collide crowd pieces pieces-gzip pieces-large' => Work::cases(),
            'crud latency sleep certificates bulk' => AircraftMeasurement::cases(),
            'bulk single recovery backlog' => RemoteMeasurement::cases(),
        ];
        foreach ($names as $expected => $cases) {
            self::assertSame(explode(' ', $expected), array_column($cases, 'value'));
        }
        self::assertSame(
            [
                'echo', 'memory', 'tasks-bulk', 'tasks-single', 'postgres-select', 'http-text', 'aircraft-crud',
                'remote-bulk',
            ],
            Core::names(),
        );
    }

    public function testProgramsTakeTheirOptions(): void
    {
        $site = new Site(Work::Text, 8080, 10);
        $shape = new Shape(4, 64);
        $job = new Job(PostgresMeasurement::Select, Variant::Single, PostgresContestant::Pool, 100, $shape, 1024);

        self::assertSame(['--port=8080', '--deadline=10', '--certificate=', '--key='], $site->arguments());
        self::assertSame(
            ['select', 'pool', '--variant=single', '-n100', '--connections=4', '--fibers=64', '--bytes=1024'],
            $job->arguments(),
        );
        self::assertEquals($job, Job::of($job->arguments()));
        $options = [
            'contestant.php' => ['-n N', '-j N', '--memory MB', '--command LINE', '--tasks KIND', '--cold'],
            'task-contestant.php' => ['-n N', '-j N', '--bytes N', '--iterations N', '--closure', '--pumice DIR'],
            'remote-script.php' => [
                '--what NAME', '-n N', '--address FILE', '--keys FILE', '--agent PID', '--engine PID',
                '--result FILE',
            ],
        ];
        foreach ($options as $program => $names) {
            preg_match_all('/^ {2}(\S.*?) {2,}/m', self::printed($program, '--help'), $matches);
            self::assertSame($names, $matches[1], $program);
        }
    }

    /** @return iterable<string, array{string}> */
    public static function scripts(): iterable
    {
        foreach (['commands', 'tasks', 'postgres', 'http', 'aircraft', 'remote'] as $script) {
            yield $script => ["{$script}.php"];
        }
    }

    #[DataProvider('scripts')]
    public function testEachScriptThatMeasuresSpindleComparesCheckouts(string $script): void
    {
        $help = self::printed($script, '--help');

        self::assertStringContainsString("\n  --against DIR  ", $help);
        self::assertStringContainsString("\n  --first  ", $help);
    }

    public function testFiguresOfCommandsHaveTheirKeys(): void
    {
        $figures = self::figures(self::printed('contestant.php', 'spindle', '-n', '4', '-j', '2'));

        self::assertSame(
            ['rate', 'seconds', 'first', 'results', 'failed', 'wrong', 'right', 'start', 'cpu', 'cpu running', 'peak'],
            array_keys($figures),
        );
        self::assertTrue($figures['right']);
        self::assertLessThan($figures['cpu'], $figures['cpu running'], 'the start of the pool does not count');
    }

    public function testFiguresOfTasksHaveTheirKeys(): void
    {
        $bulk = self::figures(self::printed('task-contestant.php', 'bulk', 'spindle-process', '-n', '10'));
        $single = self::figures(self::printed('task-contestant.php', 'single', 'spindle-process', '-n', '10'));

        self::assertSame(
            ['figure', 'seconds', 'results', 'right', 'start', 'cpu running', 'count', 'cpu', 'peak'],
            array_keys($bulk),
        );
        self::assertSame(
            ['figure', 'rate', 'results', 'right', 'start', 'cpu running', 'count', 'cpu', 'peak'],
            array_keys($single),
        );
        self::assertSame([true, true], [$bulk['right'], $single['right']]);
        self::assertLessThan($bulk['cpu'], $bulk['cpu running'], 'the start of the pool does not count');
    }

    public function testFiguresOfPostgresHaveTheirKeys(): void
    {
        $json = $this->path('postgres.json');
        try {
            TemporaryPostgres::start()->stop();
        } catch (TemporaryPostgresException $missing) {
            self::markTestSkipped($missing->getMessage());
        }
        $this->measure('postgres.php', '--only', 'select', '-n', '20', '--rounds', '1', '--first', '--json', $json);

        self::assertRaw(
            ['seconds', 'cpu', 'server', 'rate', 'results', 'count', 'done', 'right', 'figure', 'peak'],
            $json,
        );
    }

    public function testFiguresOfHttpHaveTheirKeys(): void
    {
        if (Program::find('wrk') === null) {
            self::markTestSkipped('wrk is not installed');
        }
        $json = $this->path('http.json');
        $this->measure('http.php', '--only', 'text', '--seconds', '0.5', '--rounds', '1', '--first', '--json', $json);

        self::assertRaw(
            ['figure', 'right', 'rate', 'requests', 'bytes', 'cpu', 'busiest', 'p50', 'p99', 'memory', 'client'],
            $json,
        );
    }

    public function testFiguresOfRemoteTasksHaveTheirKeys(): void
    {
        if (Program::find('redis-server') === null && Program::find('valkey-server') === null) {
            self::markTestSkipped('there is neither redis-server nor valkey-server');
        }
        $json = $this->path('remote.json');
        $this->measure('remote.php', '--only', 'bulk', '-n', '20', '--rounds', '1', '--first', '--json', $json);

        self::assertRaw(
            [
                'figure', 'seconds', 'count', 'results', 'right', 'cpu script', 'cpu workers', 'cpu engine',
                'submitted', 'bytes in', 'bytes out', 'bytes file', 'fsync',
            ],
            $json,
        );
    }

    public function testRawDataOfALineHasItsKeys(): void
    {
        $one = Series::constant('one', 1.0);
        $one->measure(1);
        $line = Line::of($one, null, Metric::figure('tasks/s'), null);

        self::assertSame(
            '{"title":"one","unit":"tasks\/s","decimals":0,"compared":false,"figure":{"this":{"1":1},"that":[]},'
            . '"cpu":{"this":[],"that":[]},"problems":[]}',
            json_encode($line->toArray(), \JSON_THROW_ON_ERROR),
        );
    }

    /** @param list<string> $keys keys of the raw data of the only series */
    private static function assertRaw(array $keys, string $json): void
    {
        $data = self::figures((string) file_get_contents($json));
        self::assertSame(['environment', 'options', 'series', 'warnings', 'lines'], array_keys($data));
        self::assertIsArray($data['series']);
        self::assertCount(1, $data['series']);
        self::assertIsArray($data['series'][0]);
        self::assertIsArray($data['series'][0]['raw']);
        self::assertIsArray($data['series'][0]['raw'][0]);
        self::assertSame($keys, array_keys($data['series'][0]['raw'][0]));
        self::assertTrue($data['series'][0]['raw'][0]['right']);
        self::assertIsArray($data['lines']);
        self::assertCount(1, $data['lines']);
    }

    /** @return array<array-key, mixed> */
    private static function figures(string $json): array
    {
        $figures = json_decode($json, true, flags: \JSON_THROW_ON_ERROR);
        self::assertIsArray($figures);

        return $figures;
    }

    private static function printed(string $program, string ...$arguments): string
    {
        $process = new Process([\PHP_BINARY, self::bench($program), ...array_values($arguments)], timeout: 60.0);

        return $process->mustRun()->getOutput();
    }

    /** Runs a script with its temporary files in the test's directory. */
    private function measure(string $script, string ...$arguments): void
    {
        $command = [\PHP_BINARY, self::bench($script), ...array_values($arguments)];
        (new Process($command, null, ['TMPDIR' => $this->path()] + getenv(), timeout: 110.0))->mustRun();
    }

    private static function bench(string $file): string
    {
        return \dirname(__DIR__, 3) . "/bench/{$file}";
    }
}
