<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\Load;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\Streams;
use Spindle\Tests\Text;

/** SIGTERM and SIGINT: the command answers the requests that have arrived, then ends. */
#[RequiresPhpExtension('pcntl')]
final class ServeStopTest extends ServeTestCase
{
    /** Records each request, and delays some responses. */
    private const NOTING = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            $id = $request->getQueryParams()['id'];
            file_put_contents(__DIR__ . '/received', "{$id}\n", FILE_APPEND);
            if ($id % 3 === 0) {
                Amp\delay(0.05);
            }
            return Spindle\Http\Response::text($id);
        };
        PHP;

    private const SLOW = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            touch(__DIR__ . '/handling');
            while (!file_exists(__DIR__ . '/go')) {
                Amp\delay(0.005);
            }
            return Spindle\Http\Response::text('done');
        };
        PHP;

    public function testUnderLoadEveryRequestReceivedIsAnsweredAndLaterConnectionsAreRefused(): void
    {
        $lost = 0;
        for ($time = 1; $time <= Scale::of(20); ++$time) {
            $server = $this->serve(self::NOTING, ['--processes', '2']);
            $load = new Load($this->address);
            $load->start(4, keep: true);
            $load->start(4, keep: false);
            Eventually::holds(static fn(): bool => \count($load->answered) > 100, 'requests are answered');
            $server->signal(\SIGTERM);
            $load->end();

            self::assertSame(0, $server->wait(), $server->getErrorOutput());
            self::assertSame(
                [],
                array_values(array_diff(Text::lines($this->path('received')), array_keys($load->answered))),
                'Each request that was received is answered',
            );
            self::assertGreaterThan(0, $load->refused);
            self::assertStringNotContainsString(' error ', $server->getErrorOutput());
            $lost += \count($load->lostOnKept) + \count($load->failed);
            unlink($this->path('received'));
        }
        self::assertLessThan(
            Scale::of(20) * 8,
            $lost,
            'Some may be lost on connections that are closed as they are sent, but not one for each client',
        );
    }

    public function testAConnectionThatWaitsInTheKernelIsServed(): void
    {
        $server = $this->serve(<<<'PHP'
            return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
                touch(__DIR__ . '/handling');
                while (!file_exists(__DIR__ . '/go')) {
                    usleep(1000); // and so nobody else is served
                }
                return Spindle\Http\Response::text('done');
            };
            PHP, ['--processes', '1']);
        $clients = [$this->client()->get('/')];
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');
        for ($i = 0; $i < 100; ++$i) {
            $clients[] = $this->client()->get('/');
        }
        $server->signal(\SIGTERM);
        $this->awaitLogged('Stopping');
        $this->file('go', '');

        foreach ($clients as $client) {
            self::assertSame('done', $client->response()->body);
            $client->close();
        }
        self::assertSame(0, $server->wait());
    }

    /** @return iterable<string, array{list<string>}> options */
    public static function admins(): iterable
    {
        yield 'without an admin address' => [[]];
        yield 'with one, whose process ends last' => [['--admin', '127.0.0.1:0']];
    }

    /** @param list<string> $options */
    #[DataProvider('admins')]
    public function testOpenRequestsAreAnsweredWhileNewConnectionsAreRefused(array $options): void
    {
        $server = $this->serve(self::SLOW, ['--processes', '1', ...$options]);
        $clients = array_map(fn(): RawClient => $this->client()->get('/'), range(1, 20));
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');

        $server->signal(\SIGTERM);
        $this->awaitLogged('Stopping');
        Eventually::holds(fn(): bool => !Streams::accepts($this->address), 'connections are refused');
        $this->file('go', '');

        foreach ($clients as $client) {
            $response = $client->response();
            self::assertSame(['done', 'close'], [$response->body, $response->header('connection')]);
            $client->close();
        }
        self::assertSame(0, $server->wait());
    }

    public function testASecondSignalEndsTheServerAtOnce(): void
    {
        foreach ([\SIGTERM => 143, \SIGINT => 130] as $signal => $status) {
            $server = $this->serve(self::SLOW, ['--processes', '2']);
            $client = $this->client()->get('/');
            Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');

            $server->signal($signal);
            $this->awaitLogged('Stopping');
            $server->signal($signal);

            self::assertSame($status, $server->wait());
            self::assertSame('', $client->rest());
            unlink($this->path('handling'));
        }
    }

    public function testAnInterruptOfAllProcessesLosesNoRequest(): void
    {
        $server = $this->serve(self::SLOW, ['--processes', '2']);
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');

        foreach ([(int) $server->getPid(), ...$this->workers()] as $pid) {
            posix_kill($pid, \SIGINT);
        }
        $this->awaitLogged('Stopping');
        $this->file('go', '');

        self::assertSame('done', $client->response()->body);
        $client->close();
        self::assertSame(0, $server->wait());
    }

    public function testSignalsOfOtherServersLoseNoRequest(): void
    {
        $server = $this->serve(self::SLOW, ['--processes', '2']);
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');

        array_map($this->signalAll(...), [\SIGUSR1, \SIGUSR2]);
        $this->awaitLogged(' SIGUSR1 was ignored');
        $this->awaitLogged(' SIGUSR2 was ignored');
        $this->signalAll(\SIGQUIT);
        $this->awaitLogged('Stopping');
        $this->file('go', '');

        self::assertSame('done', $client->response()->body);
        $client->close();
        self::assertSame(0, $server->wait());
    }

    public function testAnInterruptThatWasIgnoredAtTheStartStaysIgnoredAndIsReported(): void
    {
        $app = 'return static fn($request) => Spindle\Http\Response::text((string) getmypid());';
        $server = $this->serve($app, ['--processes', '2'], through: ['sh', '-c', 'trap "" INT; exec "$@"', 'sh']);
        $workers = $this->workers();

        $this->signalAll(\SIGINT);
        $this->signalAll(\SIGINT);
        self::assertSame(200, $this->get()->status);
        self::assertSame($workers, $this->workers());
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait());
        $log = $server->getErrorOutput();
        self::assertStringContainsString(
            'info SIGINT stays ignored, because it was ignored at the start, as in a background job of a script.'
                . ' SIGTERM stops the server',
            $log,
        );
        self::assertSame(1, substr_count($log, 'SIGINT'));
    }

    public function testAHangupReloadsButStopsTheServerIfTheTerminalIsClosed(): void
    {
        $this->app(self::SLOW);
        $log = $this->path('log');
        $logged = static fn(string $text): bool => str_contains((string) file_get_contents($log), $text);
        // PHP leaves its own side of the terminal open in child processes.
        $script = 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || eval "exec $fd>&-"; done;'
            . ' exec setsid --ctty "$@"';
        $command = [
            'bash',
            '-c',
            $script,
            'bash',
            \PHP_BINARY,
            \dirname(__DIR__, 3) . '/bin/spindle',
            'serve',
            'app.php',
            '--processes',
            '1',
            '--listen',
            "unix://{$this->path('socket')}",
        ];
        $server = proc_open($command, [['pty'], ['pty'], ['file', $log, 'w']], $terminal, $this->path());
        self::assertNotFalse($server);
        $pid = proc_get_status($server)['pid'];
        try {
            Eventually::holds(static fn(): bool => $logged(' Listening on '), 'it serves', 20.0);
            posix_kill($pid, \SIGHUP);
            Eventually::holds(static fn(): bool => $logged(' Reloaded'), 'it has reloaded', 20.0);
            $client = $this->client("unix://{$this->path('socket')}")->get('/');
            Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');

            array_map(fclose(...), $terminal);
            Eventually::holds(
                static fn(): bool => $logged(' The terminal was closed'),
                'it knows that it is to end',
                20.0,
            );
            posix_kill($pid, \SIGHUP); // a shell sends one, too
            $this->file('go', '');
            self::assertSame('done', $client->response()->body);
            $client->close();
            Eventually::holds(static fn(): bool => !Processes::isAlive($pid), 'it has ended', 20.0);
            self::assertSame(0, proc_get_status($server)['exitcode']);
            self::assertSame(1, substr_count((string) file_get_contents($log), ' Reloading'));
        } finally {
            if (Processes::isAlive($pid)) {
                posix_kill($pid, \SIGKILL);
            }
            proc_close($server);
        }
    }

    public function testUnderLoadASignalToAllProcessesEndsThem(): void
    {
        $server = $this->serve(self::NOTING, ['--processes', '2', '--admin', '127.0.0.1:0']);
        $load = new Load($this->address);
        $load->start(4, keep: true);
        $load->start(4, keep: false);
        Eventually::holds(static fn(): bool => \count($load->answered) > 100, 'requests are answered');
        $this->signalAll(\SIGTERM);
        $load->end();

        self::assertSame(0, $server->wait(), $server->getErrorOutput());
        self::assertSame(
            [],
            array_values(array_diff(Text::lines($this->path('received')), array_keys($load->answered))),
            'Each request that was received is answered',
        );
        self::assertGreaterThan(0, $load->refused);
        self::assertDoesNotMatchRegularExpression('/ (?:error|warning) /', $server->getErrorOutput());
    }

    public function testTheAdminAddressReportsDrainingAfterASignalToAllProcesses(): void
    {
        $server = $this->serve(self::SLOW, ['--processes', '2', '--admin', '127.0.0.1:0', '--block-timeout', '0.4']);
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');
        $this->signalAll(\SIGTERM);
        $this->awaitLogged('Stopping');

        foreach (range(1, 3) as $_) {
            Eventually::holds(
                fn(): bool => str_contains($this->get('/healthz', $this->adminAddress)->body, '"draining"'),
                'it says that they drain',
            );
        }
        $this->file('go', '');
        self::assertSame('done', $client->response()->body);
        $client->close();
        self::assertSame(0, $server->wait());
        self::assertDoesNotMatchRegularExpression('/ (?:error|warning) /', $server->getErrorOutput());
    }

    public function testTheFileOfAUnixSocketStaysUntilTheEnd(): void
    {
        $socket = $this->path('socket');
        $server = $this->serve(
            'return static fn($request) => Spindle\Http\Response::text((string) getmypid());',
            ['--processes', '2', '--listen', "unix://{$socket}"],
        );
        [$first] = $this->workers();
        $server->signal(\SIGHUP);
        $this->awaitLogged('Reloaded');
        Eventually::holds(fn(): bool => !\in_array($first, $this->workers(), true), 'an old process is gone');

        self::assertSame(200, $this->get()->status);
        $server->signal(\SIGTERM);
        self::assertSame(0, $server->wait());
        self::assertFileDoesNotExist($socket);
    }

    /** Signals the whole group, like systemd, or `kill` with the negative number of a process group. */
    private function signalAll(int $signal): void
    {
        foreach ([(int) $this->serve?->getPid(), ...$this->workers()] as $pid) {
            posix_kill($pid, $signal);
        }
    }
}
