<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

/** Shows that the benchmark runs, prints its tables, and ends its server. No test here checks speed. */
final class HttpClientBenchTest extends TidyTestCase
{
    use OwnDirectory;

    public function testEveryMeasurementPrintsItsTable(): void
    {
        $process = new Process([
            \PHP_BINARY, __DIR__ . '/../../../bench/http-client.php', '-n', '100', '--fibers', '2', '--megabytes', '1',
            '--streams', '5', '--rounds', '1', '--peers', 'undici,curl', '--json', $this->path('client.json'),
        ]);
        $process->mustRun();

        self::assertMatchesRegularExpression('/^undici, Node.js: not available: /m', $process->getOutput());
        self::assertStringNotContainsString('not all results are right', $process->getOutput());

        foreach ([
            'GET of 1 KB over kept connections, 2 at a time' => 1,
            'A handler that makes ten calls of 100 ms side by side' => 1,
            'Open streams of server-sent events' => 1,
            'A large body into a file' => 2,
            'A large body from a file' => 2,
        ] as $title => $rows) {
            self::assertMatchesRegularExpression(
                "/^{$title}.*\n\n\\|.*\n\\|.*\n(?:\\| (?:Spindle|curl) +\\| +[\\d.,]+ .*\n){{$rows}}/m",
                $process->getOutput(),
            );
        }
        self::assertFileExists($this->path('client.json'));
    }

    public function testAnotherCheckoutIsMeasuredBesideThisOne(): void
    {
        $root = \dirname(__DIR__, 3);
        $process = new Process([
            \PHP_BINARY, "{$root}/bench/http-client.php", '--only', 'get,download', '-n', '100', '--fibers', '2',
            '--megabytes', '1', '--rounds', '1', '--first', '--against', $root,
        ]);
        $process->mustRun();

        $row = '/^\| Spindle, %s +\|( +[\d.,…–\/a-zA-Zµ ]+\|)+$/m';
        self::assertMatchesRegularExpression(\sprintf($row, '2 at a time'), $process->getOutput());
        self::assertMatchesRegularExpression(\sprintf($row, 'download'), $process->getOutput());
    }
}
