<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Eventually;
use Symfony\Component\Process\Process;

/** What `spindle serve` writes to standard error. */
#[RequiresPhpExtension('pcntl')]
final class ServeLogTest extends TestCase
{
    use RunsSpindle;

    private const TIME = '\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d';

    private const FAILING = '<?php return static fn($request) => throw new RuntimeException("no\ndatabase");';

    public function testAnEntryIsALineWithTimeProcessAndLevel(): void
    {
        [$process, $pid] = $this->served(['--processes', '1']);

        self::assertSame('', $process->getOutput());
        self::assertMatchesRegularExpression('~^' . self::TIME . " \\[{$pid}\\] info Listening on unix://\\S+, http://127\\.0\\.0\\.1:\\d+ with 1 process\n~", $process->getErrorOutput());
        self::assertMatchesRegularExpression('~^' . self::TIME . ' \[\d+\] error The handler of GET /x failed: no\\\\ndatabase\n    RuntimeException: no\n    database in \S+/app\.php:1\n    Stack trace:\n    #0 ~m', $process->getErrorOutput());
        self::assertMatchesRegularExpression('~^' . self::TIME . " \\[{$pid}\\] info Stopping~m", $process->getErrorOutput());
    }

    public function testAnEntryIsAnObjectInALineOfJson(): void
    {
        [$process, $pid] = $this->served(['--processes', '1', '--log-format', 'json']);

        $entries = array_map(static fn(string $line): mixed => json_decode($line, true, flags: \JSON_THROW_ON_ERROR), explode("\n", rtrim($process->getErrorOutput())));
        self::assertCount(3, $entries);
        self::assertIsArray($entries[0]);
        self::assertSame(['time', 'level', 'pid', 'message'], array_keys($entries[0]));
        self::assertSame(['info', $pid], [$entries[0]['level'], $entries[0]['pid']]);
        self::assertIsArray($entries[1]);
        self::assertSame(['error', "The handler of GET /x failed: no\ndatabase"], [$entries[1]['level'], $entries[1]['message']]);
        self::assertIsString($entries[1]['exception']);
        self::assertStringContainsString('Stack trace', $entries[1]['exception']);
    }

    public function testWhereQuietIsAskedForOnlyWarningsAndErrorsAreLogged(): void
    {
        [$process] = $this->served(['--processes', '1', '--quiet']);

        self::assertStringNotContainsString(' info ', $process->getErrorOutput());
        self::assertStringContainsString(' error The handler of GET /x failed', $process->getErrorOutput());
    }

    public function testColoursAreForTerminals(): void
    {
        $this->file('app.php', '<?php posix_kill(posix_getppid(), SIGTERM); sleep(10);');
        $line = '$SPINDLE serve app.php --listen 127.0.0.1:0';

        self::assertStringContainsString("\e[32minfo\e[0m Stopping", $this->shell("TERM=xterm script -qefc '{$line}' /dev/null < /dev/null")->getOutput());
        self::assertStringContainsString('] info Stopping', $this->shell("NO_COLOR=1 TERM=xterm script -qefc '{$line}' /dev/null < /dev/null")->getOutput());
        self::assertStringContainsString("\e[32minfo\e[0m Stopping", $this->shell("{$line} --ansi")->getErrorOutput());
    }

    /**
     * After a request and an orderly end.
     *
     * @param list<string> $options
     *
     * @return array{Process, int|null} with its pid
     */
    private function served(array $options): array
    {
        $this->file('app.php', self::FAILING);
        $process = $this->process(['serve', 'app.php', '--listen', "unix://{$this->path('socket')}", '--listen', '127.0.0.1:0', ...$options]);
        $process->start();
        $ready = \in_array('--quiet', $options, true) ? fn(): bool => file_exists($this->path('socket')) : static fn(): bool => str_contains($process->getErrorOutput(), 'Listening');
        Eventually::holdsByItself($ready, 'it serves', 10.0);
        $this->ask();
        $pid = $process->getPid();
        $process->signal(\SIGTERM);
        self::assertSame(0, $process->wait());

        return [$process, $pid];
    }

    private function ask(): void
    {
        $client = stream_socket_client("unix://{$this->path('socket')}");
        self::assertNotFalse($client);
        fwrite($client, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        self::assertStringStartsWith('HTTP/1.1 500 ', (string) stream_get_contents($client));
    }
}
