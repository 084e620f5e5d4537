<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Symfony\Component\Process\Process;

/** Shows that the benchmark runs, prints its tables, and ends its server. No test here checks speed. */
final class HttpClientBenchTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;

    public function testEveryMeasurementPrintsItsTable(): void
    {
        $process = new Process([
            \PHP_BINARY, __DIR__ . '/../../../bench/http-client.php', '-n', '100', '--fibers', '2', '--megabytes', '1',
            '--streams', '5', '--rounds', '1', '--peers', 'curl', '--json', $this->path('client.json'),
        ]);
        $process->mustRun();

        foreach ([
            'GET of 1 KB over kept connections, 2 at a time' => 1,
            'Ten calls side by side' => 1,
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
}
