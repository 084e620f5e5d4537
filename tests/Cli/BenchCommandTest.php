<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\Fork\ProgramResult;

final class BenchCommandTest extends TestCase
{
    protected function setUp(): void
    {
        Program::isPhar() && self::markTestSkipped('A phar contains no benchmarks');
    }

    public function testItComparesSpindleWithItsPeersAndKeepsTheRawData(): void
    {
        $json = tempnam(sys_get_temp_dir(), 'bench');
        self::assertIsString($json);
        try {
            $process = self::spindle(
                'commands',
                '-n',
                '20',
                '--rounds',
                '1',
                '--memory',
                '0,10',
                '--peers',
                'proc_open',
                '--json',
                $json,
            );
            $data = json_decode((string) file_get_contents($json), true, flags: \JSON_THROW_ON_ERROR);
        } finally {
            unlink($json);
        }

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        $row = '/^\| %s +\| +[\d,]+ \| +[\d,]+ … [\d,]+ \|.*\d\.\d\d/m';
        foreach (['Spindle, proc_open', 'in-process proc_open pool'] as $contestant) {
            self::assertMatchesRegularExpression(\sprintf($row, $contestant), $process->getOutput());
        }
        self::assertMatchesRegularExpression('/^PHP +' . preg_quote(\PHP_VERSION, '/') . '/m', $process->getOutput());
        self::assertStringContainsString("\nThe process holds 10 MB\n", $process->getOutput());
        self::assertStringContainsString('round 1/1: in-process proc_open pool, 10 MB', $process->getErrorOutput());
        self::assertIsArray($data);
        self::assertSame(['environment', 'options', 'series', 'warnings'], array_keys($data));
        self::assertEveryMeasurementIsRight($data['series']);
    }

    public function testTheCommandIsTheUsers(): void
    {
        $process = self::spindle(
            'commands',
            '-n',
            '5',
            '--rounds',
            '1',
            '--peers',
            'none',
            '--start-method',
            'proc_open',
            '--command',
            'printf "a b" | wc -c',
        );

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertStringNotContainsString('not all results are right', $process->getOutput());
    }

    public function testItComparesTheWorkerPoolWithItsPeersAndChecksEveryResult(): void
    {
        $json = tempnam(sys_get_temp_dir(), 'bench');
        self::assertIsString($json);
        try {
            $process = self::spindle(
                'tasks',
                '-n',
                '20',
                '--rounds',
                '1',
                '--only',
                'bulk,single,objects,mix,cpu,echo,memory',
                '--workers',
                '1,2',
                '--bytes',
                '4096',
                '--iterations',
                '1000',
                '--peers',
                'amp',
                '--limit',
                '20',
                '--json',
                $json,
            );
            $data = json_decode((string) file_get_contents($json), true, flags: \JSON_THROW_ON_ERROR);
        } finally {
            unlink($json);
        }

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        foreach ([
            'No-op tasks in bulk, workers: 1',
            'No-op tasks in bulk, workers: 2',
            'One task at a time',
            'Invokable objects',
            'One task in 100',
            'The CPU-bound tasks',
            'A string to a worker and back',
            'The memory of this process',
        ] as $title) {
            self::assertMatchesRegularExpression(
                "/^{$title}.*\n\n(?:\|.*\n)*\| Spindle\b[^|]*\| +[\\d,.]+ \|/m",
                $process->getOutput(),
            );
        }
        self::assertIsArray($data);
        self::assertSame(['environment', 'options', 'series', 'warnings'], array_keys($data));
        self::assertIsArray($data['series']);
        foreach ($data['series'] as $series) {
            self::assertIsArray($series);
            // amphp/parallel sometimes hangs when its pool ends. No other contestant may.
            $label = (string) json_encode($series['label'], \JSON_UNESCAPED_SLASHES);
            self::assertContains(
                $series['problems'],
                str_starts_with($label, '"amphp/') ? [[], ['it has not finished within 20 seconds']] : [[]],
                $label,
            );
            self::assertIsArray($series['raw']);
            self::assertNotContains(false, array_column($series['raw'], 'right'));
        }
    }

    public function testItCountsWhatCanBeCreatedAndSaysWhatIsNotAvailable(): void
    {
        $process = self::spindle(
            'contexts',
            '--count',
            '4',
            '--samples',
            '1',
            '--iterations',
            '1000',
            '--php',
            \PHP_BINARY,
            '--php',
            '/nowhere/php',
        );

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        foreach ([
            'forks, waited for',
            "forks by Threads against processes' count",
            'proc_open, /bin/true',
            'tasks through one worker, one at a time',
        ] as $way) {
            self::assertMatchesRegularExpression("~^\| {$way} +\| +[\\d,]+ \|~m", $process->getOutput());
        }
        self::assertMatchesRegularExpression(
            '/^(\| )?threads \(ext-parallel\), joined(: not available: | +\| +[\d,]+ \|)/m',
            $process->getOutput(),
        );
        self::assertStringContainsString(
            "\n/nowhere/php: not available: there is no such program\n",
            $process->getOutput(),
        );
    }

    public function testAMistakeIsOneLineAndNothingIsMeasured(): void
    {
        $benchmarks = 'commands, tasks, postgres, http, http-client, aircraft, remote, contexts';
        $number = 'give a whole number, at least';
        $mistakes = [
            "argument 'servers' is not a benchmark; give one of: {$benchmarks}" => ['servers'],
            "option --memory: 'much' is not allowed; {$number} 0" => ['commands', '--memory', 'much'],
            "option --start-method: 'fork' is not allowed; give auto, posix_spawn or proc_open" => [
                'commands',
                '--start-method',
                'fork',
            ],
            "option --only: 'everything' is not allowed; give all, or some of bulk, single, objects, mix, cpu, echo,"
                . ' memory, start, death' => ['tasks', '--only', 'everything'],
            "option --pumice: there is no src/Pumice.php in '/nowhere'" => ['tasks', '--pumice', '/nowhere'],
            'option --memory does not exist; --help lists the options' => ['tasks', '--memory', '10'],
            "option --only: 'joins' is not allowed; give all, or some of select, cells, far, unit, update, rows,"
                . ' parameter, stream, copy, sleep, gaps, cancel, acquire' => ['postgres', '--only', 'joins'],
            "option --fibers: '0' is not allowed; {$number} 1" => ['postgres', '--fibers', '0'],
            'option --dsn: Could not connect to PostgreSQL: /nowhere/.s.PGSQL.5432: no such file or directory' => [
                'postgres',
                '--dsn',
                'host=/nowhere port=5432',
            ],
            "option --only: 'fly' is not allowed; give all, or some of crud, latency, sleep, certificates, bulk" => [
                'aircraft',
                '--only',
                'fly',
            ],
            "option --cycles: '0' is not allowed; {$number} 1" => ['aircraft', '--cycles', '0'],
            "option --html: '/nowhere/report.html' can't be written; give a file in an existing folder" => [
                'aircraft',
                '--html',
                '/nowhere/report.html',
            ],
            'option --dsn does not exist; --help lists the options' => ['aircraft', '--dsn', 'host=/tmp'],
            'option --html does not exist; --help lists the options' => ['http', '--html', 'report.html'],
            "option --only: 'speed' is not allowed; give all, or some of bulk, single, recovery, backlog" => [
                'remote',
                '--only',
                'speed',
            ],
            "option --streams: '1001' is not allowed; give a whole number, at most 1000" => [
                'http-client',
                '--streams',
                '1001',
            ],
            "option --peers: 'amp' is not allowed; give all, or some of guzzle, undici, curl" => [
                'http-client',
                '--peers',
                'amp',
            ],
            "option --backlog: '10' is not allowed; {$number} 1000" => ['remote', '--backlog', '10'],
            "option -n: '0' is not allowed; {$number} 1" => ['contexts', '--count', '0'],
            "option --command: 'exit 3' fails with exit code 3; give a line that succeeds" => [
                'commands',
                '--command',
                'exit 3',
            ],
        ];
        foreach ($mistakes as $message => $arguments) {
            $process = self::spindle(...$arguments);

            self::assertSame(
                [255, '', "spindle: {$message}\n"],
                [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()],
            );
        }
    }

    public function testAnUnknownPeerIsRefusedWithTheNamesThatThereAre(): void
    {
        $process = self::spindle('commands', '--peers', 'gearman');

        self::assertSame(255, $process->getExitCode());
        self::assertMatchesRegularExpression(
            "/^spindle: contestant 'gearman' is not allowed; give .*symfony, amp, react.*\n\$/",
            $process->getErrorOutput(),
        );
    }

    private static function spindle(string ...$arguments): ProgramResult
    {
        return Program::run(['bench', ...array_values($arguments)], \dirname(__DIR__, 2));
    }

    private static function assertEveryMeasurementIsRight(mixed $series): void
    {
        self::assertIsArray($series);
        self::assertNotSame([], $series);
        foreach ($series as $one) {
            self::assertIsArray($one);
            self::assertIsArray($one['raw']);
            self::assertSame([true], array_column($one['raw'], 'right'), json_encode($one, \JSON_THROW_ON_ERROR));
            self::assertSame([20], array_column($one['raw'], 'results'));
        }
    }
}
