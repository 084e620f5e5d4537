<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Streams;
use Symfony\Component\Process\Process;

/** Tests what `spindle serve` writes to standard error. */
#[RequiresPhpExtension('pcntl')]
final class ServeLogTest extends SpindleCommandTestCase
{
    private const TIME = '\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d';

    private const FAILING = '<?php return static fn($request) => throw new RuntimeException("no\ndatabase");';

    public function testAnEntryIsALineWithTimeProcessAndLevel(): void
    {
        [$process, $pid] = $this->served(['--processes', '1']);

        self::assertSame('', $process->getOutput());
        self::assertMatchesRegularExpression(
            '~^'
                . self::TIME
                . " \\[{$pid}\\] info Listening on unix://\\S+, http://127\\.0\\.0\\.1:\\d+ with 1 process\n~",
            $process->getErrorOutput(),
        );
        self::assertMatchesRegularExpression(
            '~^'
                . self::TIME
                . ' \[\d+\] error The handler of GET /x failed: no\\\\ndatabase\n'
                . '    RuntimeException: no\n    database in \S+/app\.php:1\n    Stack trace:\n    #0 ~m',
            $process->getErrorOutput(),
        );
        self::assertMatchesRegularExpression(
            '~^' . self::TIME . " \\[{$pid}\\] info Stopping~m",
            $process->getErrorOutput(),
        );
    }

    public function testAnEntryIsAnObjectInALineOfJson(): void
    {
        [$process, $pid] = $this->served(['--processes', '1', '--log-format', 'json']);

        $entries = array_map(
            static fn(string $line): mixed => json_decode($line, true, flags: \JSON_THROW_ON_ERROR),
            explode("\n", rtrim($process->getErrorOutput())),
        );
        self::assertCount(3, $entries);
        self::assertIsArray($entries[0]);
        self::assertSame(['time', 'level', 'pid', 'message'], array_keys($entries[0]));
        self::assertSame(['info', $pid], [$entries[0]['level'], $entries[0]['pid']]);
        self::assertIsArray($entries[1]);
        self::assertSame(
            ['error', "The handler of GET /x failed: no\ndatabase"],
            [$entries[1]['level'], $entries[1]['message']],
        );
        self::assertIsString($entries[1]['exception']);
        self::assertStringContainsString('Stack trace', $entries[1]['exception']);
    }

    public function testTheAccessLogCanBePartOfTheLog(): void
    {
        $app = <<<'PHP'
            <?php
            return new Spindle\Http\MiddlewareStack(
                static fn($request) => throw new DomainException('no'),
                new Spindle\Http\Middleware\RequestId(),
                Spindle\Http\Middleware\AccessLog::toServerLogger(),
            );
            PHP;
        [$json] = $this->served(['--processes', '1', '--log-format', 'json'], $app);
        [$text] = $this->served(['--processes', '1'], $app);
        [$quiet] = $this->served(['--processes', '1', '--quiet'], $app);

        $entry = json_decode(explode("\n", $json->getErrorOutput())[1], true, flags: \JSON_THROW_ON_ERROR);
        self::assertIsArray($entry);
        self::assertSame(
            [
                'time', 'level', 'pid', 'message', 'request_id', 'method', 'target', 'client_ip', 'status',
                'duration',
            ],
            array_keys($entry),
        );
        self::assertIsFloat($entry['duration']);
        self::assertSame(
            ['info', 'GET', '/x', 500],
            [$entry['level'], $entry['method'], $entry['target'], $entry['status']],
        );
        self::assertMatchesRegularExpression(
            '~^'
                . self::TIME
                . ' \[\d+\] info \S+ - - \[.+\] "GET /x HTTP/1\.1" 500 - "-" "-" \(request id \w{32}\)\n~m',
            $text->getErrorOutput(),
        );
        self::assertStringNotContainsString('"GET /x', $quiet->getErrorOutput());
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

        self::assertStringContainsString(
            "\e[32minfo\e[0m Stopping",
            $this->shell("TERM=xterm script -qefc '{$line}' /dev/null < /dev/null")->getOutput(),
        );
        self::assertStringContainsString(
            '] info Stopping',
            $this->shell("NO_COLOR=1 TERM=xterm script -qefc '{$line}' /dev/null < /dev/null")->getOutput(),
        );
        self::assertStringContainsString("\e[32minfo\e[0m Stopping", $this->shell("{$line} --ansi")->getErrorOutput());
    }

    public function testMessagesOfExceptionsAreEscapedForTerminals(): void
    {
        $failing = '<?php return static fn($request) => throw new RuntimeException("no {method} \u{9b}31m \u{e9}");';
        [$text] = $this->served(['--processes', '1'], $failing);
        [$json] = $this->served(['--processes', '1', '--log-format', 'json'], $failing);

        self::assertStringContainsString(
            "error The handler of GET /x failed: no \\x7bmethod\\x7d \\302\\23331m \u{e9}\n"
            . "    RuntimeException: no {method} \\302\\23331m \u{e9} in ",
            $text->getErrorOutput(),
        );
        self::assertStringContainsString(
            "\"The handler of GET /x failed: no \\\\x7bmethod\\\\x7d \\u009b31m \u{e9}\"",
            $json->getErrorOutput(),
        );
    }

    public function testATraceEndsAtTheFunctionThatTheServerHasCalled(): void
    {
        [$process] = $this->served(['--processes', '1'], <<<'PHP'
            <?php
            function query() { throw new RuntimeException('no database'); }
            return static function ($request) {
                Amp\delay(0);
                try {
                    query();
                } catch (RuntimeException $cause) {
                    throw new LogicException('no page', 0, $cause);
                }
            };
            PHP);
        $app = preg_quote($this->path('app.php'), '~');
        $end = "    #\\d \\S+/src/Http/\\S+\\(\\d+\\): \\S+\\(\\)\n"
            . "    … \\d+ frames of Spindle and its event loop are left out …\n    #\\d+ \\{main\\}\n";

        self::assertMatchesRegularExpression(
            "~    RuntimeException: no database in {$app}:2\n    Stack trace:\n    #0 {$app}\\(6\\): query\\(\\)\n"
                . "{$end}    \n    Next LogicException: no page in {$app}:8\n    Stack trace:\n{$end}~",
            $process->getErrorOutput(),
        );
    }

    public function testOfALongChainOfExceptionsTheFirstAndTheLastAreLogged(): void
    {
        [$process] = $this->served(['--processes', '1'], <<<'PHP'
            <?php
            return static function ($request) {
                $failure = new DomainException('the cause');
                for ($i = 1; $i < 3_000; ++$i) {
                    $failure = new RuntimeException("number {$i}", previous: $failure);
                }
                throw $failure;
            };
            PHP);
        $log = $process->getErrorOutput();

        self::assertStringContainsString("\n    DomainException: the cause in ", $log);
        self::assertStringContainsString("\n    … 2990 exceptions are left out …\n", $log);
        self::assertStringContainsString("\n    Next RuntimeException: number 2999 in ", $log);
        self::assertStringNotContainsString('number 2990 ', $log);
    }

    public function testOfALongExceptionTheMiddleIsLeftOut(): void
    {
        $failing = '<?php return static fn($request)'
            . ' => throw new RuntimeException("begin" . str_repeat("x", 2_000_000));';
        foreach (['text', 'json'] as $format) {
            [$process] = $this->served(['--processes', '1', '--log-format', $format], $failing);
            $log = $process->getErrorOutput();

            self::assertLessThan(100_000, \strlen($log));
            self::assertMatchesRegularExpression(
                '/RuntimeException: beginx+ … \d+ bytes are left out … x+ in \S+app\.php:1\b/',
                $log,
            );
            self::assertStringContainsString('{main}', $log);
        }
    }

    public function testWhatPhpHasToSayIsLoggedOnce(): void
    {
        $app = <<<'PHP'
            <?php
            return static function ($request) {
                error_reporting(E_ALL);
                trigger_error('{message} of a warning', E_USER_WARNING);
                trigger_error('a deprecation', E_USER_DEPRECATED);
                @trigger_error('silenced', E_USER_WARNING);
                error_reporting(E_ALL & ~E_USER_NOTICE);
                trigger_error('not to be reported');
                set_error_handler(static function (int $level, string $message): bool {
                    return file_put_contents(__DIR__ . '/own', $message) > 0;
                });
                trigger_error('for a handler of its own', E_USER_WARNING);
                if (pcntl_fork() === 0) {
                    eval('continue;'); // what a handler forks is no concern of the supervisor
                }
                pcntl_wait($status);
                eval('break;'); // fatal
            };
            PHP;
        [$process] = $this->served(['--processes', '1', '--log-format', 'json'], $app);
        $entries = array_map(
            static fn(string $line): array => (array) json_decode($line, true, flags: \JSON_THROW_ON_ERROR),
            explode("\n", rtrim($process->getErrorOutput())),
        );
        $file = $this->path('app.php');

        self::assertSame(
            [
                ['warning', "PHP: {message} of a warning ({$file}, line 4)"],
                ['notice', "PHP: a deprecation ({$file}, line 5)"],
                [
                    'critical',
                    "PHP: 'continue' not in the 'loop' or 'switch' context ({$file}(14) : eval()'d code, line 1)",
                ],
            ],
            array_map(
                static fn(array $entry): array => [$entry['level'], $entry['message']],
                \array_slice($entries, 1, 3),
            ),
        );
        self::assertSame('for a handler of its own', file_get_contents($this->path('own')));
        self::assertSame(1, substr_count($process->getErrorOutput(), "failed: 'break' not in"));
        self::assertSame(1, substr_count($process->getErrorOutput(), "'break'"));
    }

    public function testAFatalErrorOfAProcessThatIsEndingAnywayIsLogged(): void
    {
        [$process] = $this->served(
            ['--processes', '1'],
            '<?php return static function ($request) { posix_kill(getmypid(), SIGTERM); Amp\delay(0.1);'
            . ' eval("break;"); };',
        );

        self::assertSame(
            1,
            substr_count($process->getErrorOutput(), "failed: 'break' not in the 'loop'"),
            $process->getErrorOutput(),
        );
    }

    public function testWhatFailsWhenAProcessHasSaidItsLastWordsIsNotLost(): void
    {
        [$process] = $this->served(
            ['--processes', '1'],
            '<?php register_shutdown_function(static fn() => eval("break;"));'
            . ' return static fn($request) => throw new RuntimeException();',
        );

        self::assertStringContainsString("\nFatal error: 'break' not in the 'loop'", $process->getErrorOutput());
    }

    public function testAFatalErrorOfTheSupervisorIsLogged(): void
    {
        $this->file('prepended.php', '<?php pcntl_signal(SIGUSR1, static fn() => str_repeat("x", 1 << 30));');
        $this->file('app.php', '<?php posix_kill(posix_getppid(), SIGUSR1); sleep(10);');
        $options = ['-d', 'auto_prepend_file=prepended.php', '-d', 'memory_limit=64M'];
        $command = [\PHP_BINARY, ...$options, Program::path(), 'serve', 'app.php', '--listen', '127.0.0.1:0'];
        $process = new Process($command, $this->path(), [self::MARK => $this->mark]);
        $process->run();

        self::assertMatchesRegularExpression(
            '~^'
                . self::TIME
                . ' \[\d+\] critical PHP: Allowed memory size of 67108864 bytes exhausted'
                . ' [^\n]+prepended\.php, line 1\)\n$~D',
            $process->getErrorOutput(),
        );
    }

    /** @return iterable<string, array{list<string>}> */
    public static function channels(): iterable
    {
        yield 'a pipe' => [['pipe', 'w']];
        yield 'a socket' => [['socket']];
    }

    /** @param list<string> $channel descriptor specification for standard error */
    #[DataProvider('channels')]
    public function testAStalledReaderDelaysNothingAndLearnsOfMissedEntries(array $channel): void
    {
        $this->file(
            'app.php',
            '<?php return static fn($request) => throw new RuntimeException(str_repeat("x", 5000));',
        );
        $options = ['--processes', '1', '--listen', "unix://{$this->path('socket')}"];
        $command = [\PHP_BINARY, Program::path(), 'serve', 'app.php', ...$options];
        $serve = proc_open($command, [2 => $channel], $pipes, $this->path(), [self::MARK => $this->mark]);
        self::assertNotFalse($serve);
        self::assertStringContainsString('Listening', (string) fgets($pipes[2]));
        for ($request = 0; $request < 200; ++$request) {
            $this->ask();
        }
        stream_set_blocking($pipes[2], false);
        stream_get_contents($pipes[2]);
        $this->ask();
        proc_terminate($serve, \SIGTERM);
        stream_set_blocking($pipes[2], true);
        $rest = (string) stream_get_contents($pipes[2]);

        self::assertSame(0, proc_close($serve));
        self::assertMatchesRegularExpression(
            '~^'
                . self::TIME
                . ' \[\d+\] warning \d+ entries are missing here, because the log could not be written\n'
                . self::TIME
                . ' \[\d+\] error The handler~m',
            $rest,
        );
        self::assertStringContainsString(' info Stopping', $rest);
    }

    /**
     * Serves one request, then ends in order.
     *
     * @param list<string> $options
     *
     * @return array{Process, int|null} the process and its id
     */
    private function served(array $options, string $app = self::FAILING): array
    {
        $this->file('app.php', $app);
        $process = $this->process(
            ['serve', 'app.php', '--listen', "unix://{$this->path('socket')}", '--listen', '127.0.0.1:0', ...$options],
        );
        $process->start();
        $ready = \in_array('--quiet', $options, true)
            ? fn(): bool => Streams::accepts("unix://{$this->path('socket')}")
            : static fn(): bool => str_contains($process->getErrorOutput(), 'Listening');
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
        stream_set_timeout($client, 10);
        fwrite($client, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        self::assertStringStartsWith('HTTP/1.1 500 ', (string) stream_get_contents($client));
    }
}
