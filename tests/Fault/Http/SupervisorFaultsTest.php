<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\Load;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/** Faults of processes, the supervisor and the application, and their effects on each other. */
#[RequiresPhpExtension('pcntl')]
final class SupervisorFaultsTest extends ServeTestCase
{
    private const PID = 'return static fn($request) => Spindle\Http\Response::text((string) getmypid());';

    /** An application whose paths name the fault to cause. */
    private const UNRULY = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            switch ($request->getUri()->getPath()) {
                case '/exit':
                    exit(3);
                case '/fatal':
                    eval('break;');
                case '/memory':
                    ini_set('memory_limit', '64M');
                    $all = new SplFixedArray(2_000_000);
                    for ($i = 0;; ++$i) {
                        $all[$i] = str_repeat('x', 50); // up to the last byte
                    }
                case '/kill':
                    posix_kill(getmypid(), SIGKILL);
                case '/loop':
                    touch(__DIR__ . '/looping');
                    for (;;);
                case '/fork':
                    if (pcntl_fork() === 0) {
                        exit(0);
                    }
                    pcntl_wait($status);
                    break;
                case '/fork-returns':
                    $parent = getmypid();
                    if (pcntl_fork() !== 0) {
                        pcntl_wait($status);
                    }
                    return Spindle\Http\Response::text(getmypid() === $parent ? 'answered' : 'answered by the fork');
                case '/fork-waits':
                    if (pcntl_fork() === 0) {
                        touch(__DIR__ . '/forked');
                        Amp\delay(60);
                    }
                    break;
                case '/later':
                    Revolt\EventLoop::queue(static fn() => throw new RuntimeException('uncaught in a callback'));
            }
            return Spindle\Http\Response::text((string) getmypid());
        };
        PHP;

    /** Gives open requests half a second. */
    private const WITH_STOP_TIMEOUT = <<<'PHP'
        return new Spindle\Http\Application(static function ($request): Spindle\Http\Response {
            switch ($request->getUri()->getPath()) {
                case '/loop':
                    touch(__DIR__ . '/looping');
                    for (;;);
                case '/wait':
                    touch(__DIR__ . '/waiting');
                    Amp\delay(0.1);
                    break;
                case '/fork-waits':
                    if (pcntl_fork() === 0) {
                        touch(__DIR__ . '/forked');
                        Amp\delay(60);
                    }
                    pcntl_wait($status); // only the event loop of the fork runs
            }
            return Spindle\Http\Response::text((string) getmypid());
        }, options: new Spindle\Http\HttpServerOptions(stopTimeout: 0.5));
        PHP;

    /** Answers with its pid. A request for /wait is answered when the file "go" exists. */
    private const WAITS_FOR_A_FILE = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            if ($request->getUri()->getPath() === '/wait') {
                touch(__DIR__ . '/handling');
                while (!file_exists(__DIR__ . '/go')) {
                    Amp\delay(0.005);
                }
            }
            return Spindle\Http\Response::text((string) getmypid());
        };
        PHP;

    protected function deadline(): int
    {
        return 180;
    }

    public function testAProcessThatIsKilledUnderLoadIsReplacedAndOnlyItsOwnRequestsFail(): void
    {
        $this->serve(self::PID, ['--processes', '2']);
        $load = new Load($this->address);
        $load->start(4, keep: true);
        $load->start(4, keep: false);
        for ($time = 1; $time <= 3; ++$time) {
            $answered = \count($load->answered);
            Eventually::holds(static fn(): bool => \count($load->answered) > $answered + 50, 'requests are answered');
            [$victim] = $this->workers();
            posix_kill($victim, \SIGKILL);
            $this->awaitLogged("(pid {$victim}) was killed by signal 9; another takes its place");
            Eventually::holds(fn(): bool => \count($this->workers()) === 2, 'it is replaced');
        }
        $load->stop();

        self::assertSame(0, $load->refused);
        self::assertLessThanOrEqual(
            3 * 8,
            \count($load->failed) + \count($load->lostOnKept),
            'one of each client for each time at most',
        );
    }

    /** @return iterable<string, array{string, string}> path, log entry after the process's name */
    public static function deaths(): iterable
    {
        yield 'exit()' => ['/exit', 'called exit()'];
        yield 'a fatal error' => [
            '/fatal',
            "failed: 'break' not in the 'loop' or 'switch' context (%s/app.php(7) : eval()'d code, line 1)",
        ];
        yield 'too much memory' => [
            '/memory',
            'failed: Allowed memory size of 67108864 bytes exhausted (tried to allocate',
        ];
        yield 'a signal' => ['/kill', 'was killed by signal 9'];
    }

    #[DataProvider('deaths')]
    public function testTheEndOfAProcessIsLoggedAndAnotherIsStarted(string $path, string $how): void
    {
        $this->serve(self::UNRULY, ['--processes', '1']);
        [$worker] = $this->workers();
        $this->client()->get($path)->rest();

        $this->awaitLogged(\sprintf("worker 1 (pid %d) {$how}", $worker, $this->path()));
        $this->awaitLogged("; another takes its place\n");
        self::assertNotSame((string) $worker, $this->get()->body);
    }

    public function testAProcessThatEndsRepeatedlyIsReplacedWithinAboutASecond(): void
    {
        $server = $this->serve(self::UNRULY, ['--processes', '1']);
        foreach (range(1, 7) as $time) {
            $this->client()->get('/exit')->rest();
            $this->awaitLogged(' called exit() while it handled GET /exit; another takes its place', $time);
            self::assertSame(200, $this->get()->status);
        }

        self::assertSame(
            1,
            substr_count($server->getErrorOutput(), "another takes its place\n"),
            'at once the first time',
        );
        self::assertSame(
            6,
            preg_match_all('/another takes its place in (\d\.\d) s$/m', $server->getErrorOutput(), $delays),
            $server->getErrorOutput(),
        );
        self::assertLessThanOrEqual(1.0, (float) max('', ...$delays[1]));
    }

    public function testAnExceptionOfACallbackIsLoggedAndTheProcessContinues(): void
    {
        $this->serve(self::UNRULY, ['--processes', '1']);
        $worker = $this->get('/later')->body;

        $this->awaitLogged('Uncaught RuntimeException: uncaught in a callback');
        self::assertSame($worker, $this->get()->body);
    }

    public function testAForkOfAProcessSendsNothingToTheSupervisor(): void
    {
        $this->serve(self::UNRULY, ['--processes', '1']);
        $worker = $this->get('/fork')->body;
        self::assertSame($worker, $this->get()->body);

        posix_kill((int) $worker, \SIGKILL);
        $this->awaitLogged("(pid {$worker}) was killed by signal 9");
    }

    public function testAForkThatReturnsFromTheHandlerIsKilledBeforeItAnswers(): void
    {
        $this->serve(self::UNRULY, ['--processes', '1']);
        [$worker] = $this->workers();
        $client = $this->client()->get('/fork-returns');

        self::assertSame('answered', $client->response()->body);
        self::assertSame((string) $worker, $client->get('/')->response()->body, 'the connection has no second answer');
        $this->awaitLogged('The handler of GET /fork-returns forked process ');
    }

    public function testAForkThatWaitsInTheEventLoopIsKilledWhenAClientConnects(): void
    {
        $this->serve(self::UNRULY, ['--processes', '1']);
        [$worker] = $this->workers();
        self::assertSame((string) $worker, $this->client()->get('/fork-waits')->response()->body);
        Eventually::holds(fn(): bool => file_exists($this->path('forked')), 'the fork runs');
        Eventually::holds(function () use ($worker): bool {
            self::assertSame((string) $worker, $this->get()->body);

            return $this->logged(' forked process ');
        }, 'the fork is killed');

        Eventually::holds(
            static function () use ($worker): bool {
                $children = array_keys(Processes::childrenOf($worker));

                return array_filter($children, Processes::isAlive(...)) === [];
            },
            'the fork is gone',
        );
    }

    public function testAForkThatWaitsRunsNoHandlerOfItsProcess(): void
    {
        $this->serve(<<<'PHP'
            return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
                if ($request->getUri()->getPath() === '/fork') {
                    if (pcntl_fork() === 0) {
                        touch(__DIR__ . '/forked');
                        Amp\delay(60);
                    }
                    pcntl_wait($status);

                    return Spindle\Http\Response::text((string) getmypid());
                }
                touch(__DIR__ . '/handling');
                while (!file_exists(__DIR__ . '/go')) {
                    Amp\delay(0.005);
                }
                file_put_contents(__DIR__ . '/done', getmypid() . "\n", FILE_APPEND);

                return Spindle\Http\Response::text('done');
            };
            PHP, ['--processes', '1']);
        $waiting = $this->client()->get('/');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'the handler waits');
        $forking = $this->client()->get('/fork');
        Eventually::holds(fn(): bool => file_exists($this->path('forked')), 'the fork runs');
        touch($this->path('go'));

        self::assertSame('done', $waiting->response()->body);
        self::assertSame([$forking->response()->body], Text::lines($this->path('done')));
        $this->awaitLogged('The handler of GET /fork forked process ');
    }

    #[RequiresPhpExtension('sockets')]
    public function testAResponseWithoutALengthIsIncompleteWhenItsProcessIsKilled(): void
    {
        $this->serve(
            'return static fn($request) => Spindle\Http\Response::stream('
                . '(static function () { yield "begin"; Amp\delay(60); })());',
            ['--processes', '1'],
        );
        $client = $this->client()->send("GET / HTTP/1.0\r\n\r\n");
        $client->until('begin');
        posix_kill($this->workers()[0], \SIGKILL);

        self::assertTrue($client->isEnded());
        self::assertFalse(
            stream_socket_get_name($client->stream(), true),
            'after a reset, the kernel does not know the other side',
        );
    }

    public function testAProcessThatIsSentSigtermIsReplacedAtOnceAndAnswersItsRequests(): void
    {
        $this->serve(self::WAITS_FOR_A_FILE, ['--processes', '1']);
        [$worker] = $this->workers();
        $client = $this->client()->get('/wait');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');
        posix_kill($worker, \SIGTERM);

        $this->awaitLogged("worker 1 (pid {$worker}) received SIGTERM; another takes its place");
        self::assertNotSame((string) $worker, $this->get()->body);
        self::assertTrue(Processes::isAlive($worker), 'the request of the first process is still handled');
        $this->file('go', '');
        self::assertSame((string) $worker, $client->response()->body);
        $client->close();
        Eventually::holds(fn(): bool => \count($this->workers()) === 1, 'the first process has ended');
        self::assertSame(0, $this->timesLogged('before all received requests were answered'));
    }

    public function testAProcessThatWasSentSigtermIsNotKilledAsStalled(): void
    {
        $this->serve(
            self::WAITS_FOR_A_FILE,
            ['--processes', '1', '--admin', '127.0.0.1:0', '--block-timeout', '0.1'],
        );
        [$worker] = $this->workers();
        $client = $this->client()->get('/wait');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');
        posix_kill($worker, \SIGTERM);
        $this->awaitLogged("worker 1 (pid {$worker}) received SIGTERM; another takes its place");

        Eventually::holds(
            fn(): bool => $this->get('/healthz', $this->adminAddress)->status === 200,
            'the other process serves',
        );
        foreach (range(1, 3) as $_) {
            $metrics = $this->get('/metrics', $this->adminAddress)->body;
            self::assertStringContainsString("pid=\"{$worker}\"", $metrics, 'the old process answers, too');
        }
        $this->file('go', '');
        self::assertSame((string) $worker, $client->response()->body);
        $client->close();
    }

    public function testTheAdminProcessIsNotEndedByASignalThatIsNotTheSupervisors(): void
    {
        $server = $this->serve(self::PID, ['--processes', '1', '--admin', '127.0.0.1:0']);
        [, $admin] = $this->workers();
        posix_kill($admin, \SIGTERM);
        self::assertSame(200, $this->get('/healthz', $this->adminAddress)->status);
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait());
        self::assertStringNotContainsString('SIGTERM', $server->getErrorOutput());
    }

    public function testAHandlerThatNeverReturnsHasItsProcessKilled(): void
    {
        $this->serve(self::UNRULY, ['--processes', '1', '--block-timeout', '0.4']);
        [$worker] = $this->workers();
        $this->client()->get('/loop');

        $this->awaitLogged(
            "worker 1 (pid {$worker}) was killed, because its event loop was blocked for 0.4 s:"
                . " a handler does not return ({$this->path('app.php')}, line 18 while it handled GET /loop);"
                . ' another takes its place',
        );
        self::assertSame(200, $this->get()->status);
    }

    public function testAnIdleProcessIsNotKilledAsStalled(): void
    {
        $server = $this->serve(
            'return static function ($request) { Amp\delay(0.9);'
                . ' return Spindle\Http\Response::text((string) getmypid()); };',
            ['--processes', '1', '--block-timeout', '0.4'],
        );
        $worker = $this->get()->body;
        posix_kill((int) $server->getPid(), \SIGSTOP);
        self::assertSame($worker, $this->get()->body, 'meanwhile the supervisor itself is late, and not the process');
        posix_kill((int) $server->getPid(), \SIGCONT);
        $server->signal(\SIGHUP);
        $this->awaitLogged('Reloaded');

        // Times, ports and other processes have numbers, too.
        $log = (string) preg_replace('~^\S+ |\[\d+\]|127\.0\.0\.1:\d+~m', '', $server->getErrorOutput());
        self::assertDoesNotMatchRegularExpression("/\\b{$worker}\\b/", $log);
    }

    public function testAllProcessesEndWithinASecondWhenTheSupervisorIsKilled(): void
    {
        $server = $this->serve(self::PID, ['--processes', '3', '--admin', '127.0.0.1:0']);
        $workers = $this->workers();
        self::assertCount(4, $workers);
        $idle = $this->client();
        self::assertSame(200, $idle->get('/')->response()->status);

        $server->signal(\SIGKILL);
        $server->wait();
        $killed = hrtime(true);
        Eventually::holds(fn(): bool => @stream_socket_server($this->address) !== false, 'the port is free', 1.0);

        Eventually::holds(
            static fn(): bool => array_filter($workers, Processes::isAlive(...)) === [],
            'no process is left',
            5.0,
        );
        self::assertLessThan(5.0, (hrtime(true) - $killed) / 1e9);
        self::assertTrue($idle->isEnded());
    }

    #[RequiresPhpExtension('FFI')]
    public function testABlockedProcessEndsWhenTheSupervisorIsKilled(): void
    {
        $this->assertABlockedProcessEndsWithTheSupervisor(self::UNRULY);
    }

    public function testAProcessServesOnAfterAFileHasReachedItsSizeLimit(): void
    {
        $this->serve(<<<'PHP'
            return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
                $file = tmpfile();
                $written = @fwrite($file, str_repeat('x', 300_000)) + (int) @fwrite($file, 'x');
                return Spindle\Http\Response::text(getmypid() . ($written < 300_000 ? ' limited' : ' unlimited'));
            };
            PHP, ['--processes', '1'], through: ['sh', '-c', 'ulimit -f 200; exec "$@"', 'sh']);
        [$worker] = $this->workers();

        foreach (range(1, 3) as $_) {
            self::assertSame("{$worker} limited", $this->get()->body);
        }
    }

    #[RequiresPhpExtension('FFI')]
    public function testABlockedProcessEndsWithTheSupervisorAlthoughTheApplicationHasChangedTheGroup(): void
    {
        if (posix_geteuid() !== 0) {
            self::markTestSkipped('Only root can change the group');
        }
        $this->assertABlockedProcessEndsWithTheSupervisor('posix_setegid(65534);' . self::UNRULY);
    }

    public function testAProcessEndsWithTheSupervisorAlsoWithoutFfi(): void
    {
        $server = $this->serve(self::PID, ['--processes', '2'], ['-d', 'ffi.enable=0']);
        $workers = $this->workers();
        $server->signal(\SIGKILL);
        $server->wait();

        Eventually::holds(
            static fn(): bool => array_filter($workers, Processes::isAlive(...)) === [],
            'no process is left',
        );
        Eventually::holds(fn(): bool => @stream_socket_server($this->address) !== false, 'the port is free');
    }

    public function testAStuckProcessDoesNotHideTheSupervisorsEndFromOthers(): void
    {
        $server = $this->serve(<<<'PHP'
            return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
                if ($request->getUri()->getPath() === '/' . getmypid()) {
                    touch(__DIR__ . '/looping');
                    for (;;);
                }
                return Spindle\Http\Response::text('');
            };
            PHP, ['--processes', '2'], ['-d', 'ffi.enable=0']);
        [$first, $second] = $this->workers();
        Eventually::holds(function () use ($second): bool {
            $this->client()->get("/{$second}");

            return file_exists($this->path('looping'));
        }, 'the one that was forked last loops');
        $server->signal(\SIGKILL);
        $server->wait();
        try {
            Eventually::holds(static fn(): bool => !Processes::isAlive($first), 'the other one is gone');
            self::assertTrue(Processes::isAlive($second));
        } finally {
            posix_kill($second, \SIGKILL);
        }
    }

    public function testAnExceptionOfTheLogEndsNothing(): void
    {
        $this->app(self::PID);
        $autoload = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        $script = $this->file('serve.php', <<<PHP
            <?php
            require '{$autoload}';
            \$log = new class extends Psr\Log\AbstractLogger {
                public function log(\$level, string|Stringable \$message, array \$context = []): void
                {
                    str_starts_with(\$message, 'Reloading') && throw new RuntimeException('no space left');
                    fwrite(STDERR, "{\$message}\n");
                }
            };
            \$options = new Spindle\Http\SupervisorOptions(processes: 1);
            (new Spindle\Http\Supervisor('app.php', ['unix://socket'], \$options, \$log))->run();
            PHP);
        $this->serve = $server = new Process([\PHP_BINARY, $script], $this->path());
        $server->start();
        $this->awaitLogged('Listening on');
        $server->signal(\SIGHUP);
        $this->awaitLogged('Reloaded');
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait());
        self::assertSame(
            1,
            $this->timesLogged('log entries are lost, because the logger threw: no space left'),
        );
    }

    public function testASupervisorWithPid1LeavesNoZombies(): void
    {
        $unshare = ['unshare', '--fork', '--kill-child', '--pid', '--mount-proc'];
        if ((new Process([...$unshare, 'true']))->run() !== 0) {
            self::markTestSkipped('This user may not make a process the first of its own, as unshare does');
        }
        $this->app(<<<'PHP'
            return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
                switch ($request->getUri()->getPath()) {
                    case '/orphan':
                        exec('(sleep 0.1; echo >> ended) > /dev/null 2>&1 &');
                        break;
                    case '/exit':
                        exit(3);
                }
                return Spindle\Http\Response::text('');
            };
            PHP);
        $this->serve = $server = new Process(
            [
                ...$unshare,
                \PHP_BINARY,
                \dirname(__DIR__, 3) . '/bin/spindle',
                'serve',
                'app.php',
                '--processes',
                '1',
                '--listen',
                'unix://socket',
            ],
            $this->path(),
        );
        $server->start();
        $this->awaitLogged('Listening on');
        [$supervisor] = $this->workers();
        foreach (range(1, 3) as $_) {
            $this->get('/orphan', "unix://{$this->path('socket')}");
        }
        Eventually::holds(fn(): bool => \count(Text::lines($this->path('ended'))) === 3, 'orphans have ended');
        Eventually::holds(
            static fn(): bool => \count(Processes::childrenOf($supervisor)) === 1,
            'only the serving process exists',
        );
        $this->client("unix://{$this->path('socket')}")->get('/exit')->rest();
        $this->awaitLogged(' called exit() while it handled GET /exit; another takes its place');
        posix_kill($supervisor, \SIGTERM);

        self::assertSame(0, $server->wait(), $server->getErrorOutput());
    }

    public function testAHandlerThatNeverReturnsDelaysTheStopOnlyForTheStopTimeout(): void
    {
        $server = $this->serve(self::WITH_STOP_TIMEOUT, ['--processes', '2']);
        $this->client()->get('/loop');
        Eventually::holds(fn(): bool => file_exists($this->path('looping')), 'it loops');
        $seconds = $this->stopAndMeasure($server);

        self::assertLessThan(3.0, $seconds, 'the stop timeout is 0.5 s');
        self::assertMatchesRegularExpression(
            '/ warning worker \d \(pid \d+\) was killed, because it did not end in time:'
                . ' .* before all received requests were answered$/m',
            $server->getErrorOutput(),
        );
    }

    public function testTheStopTimeoutAppliesWhenTheProcessGetsTheSignalToo(): void
    {
        $server = $this->serve(self::WITH_STOP_TIMEOUT, ['--processes', '1']);
        $this->client()->get('/loop');
        Eventually::holds(fn(): bool => file_exists($this->path('looping')), 'it loops');
        posix_kill($this->workers()[0], \SIGTERM);

        self::assertLessThan(3.0, $this->stopAndMeasure($server));
    }

    public function testASuspendedProcessIsContinuedToAnswerAndEnd(): void
    {
        $server = $this->serve(self::WITH_STOP_TIMEOUT, ['--processes', '1']);
        [$worker] = $this->workers();
        $client = $this->client()->get('/wait');
        Eventually::holds(fn(): bool => file_exists($this->path('waiting')), 'a request is handled');
        posix_kill($worker, \SIGSTOP);
        $seconds = $this->stopAndMeasure($server);

        self::assertLessThan(3.0, $seconds);
        self::assertSame((string) $worker, $client->response()->body);
        self::assertStringNotContainsString(' warning ', $server->getErrorOutput());
    }

    public function testASuspendedProcessIsContinuedAfterItsReplacement(): void
    {
        $server = $this->serve(self::WITH_STOP_TIMEOUT, ['--processes', '1']);
        [$worker] = $this->workers();
        posix_kill($worker, \SIGSTOP);
        $server->signal(\SIGHUP);

        Eventually::holds(static fn(): bool => !Processes::isAlive($worker), 'it has ended', 10);
        self::assertStringNotContainsString('was killed', $server->getErrorOutput());
    }

    public function testAForkThatWaitsInTheEventLoopDoesNotPreventTheStop(): void
    {
        $server = $this->serve(self::WITH_STOP_TIMEOUT, ['--processes', '1']);
        [$worker] = $this->workers();
        $client = $this->client()->get('/fork-waits');
        Eventually::holds(fn(): bool => file_exists($this->path('forked')), 'the fork runs');
        $this->stopAndMeasure($server);

        self::assertSame((string) $worker, $client->response()->body);
        self::assertStringNotContainsString(' was killed', $server->getErrorOutput());
    }

    public function testAnIncompleteRequestToTheAdminAddressDoesNotDelayTheStop(): void
    {
        $server = $this->serve(self::WITH_STOP_TIMEOUT, ['--processes', '1', '--admin', '127.0.0.1:0']);
        $this->client($this->adminAddress)->send("GET /metrics HTTP/1.1\r\nHo");
        self::assertSame(200, $this->get('/livez', $this->adminAddress)->status);

        self::assertLessThan(4.0, $this->stopAndMeasure($server));
    }

    private function assertABlockedProcessEndsWithTheSupervisor(string $app): void
    {
        $server = $this->serve($app, ['--processes', '1']);
        [$worker] = $this->workers();
        $this->client()->get('/loop');
        Eventually::holds(fn(): bool => file_exists($this->path('looping')), 'it loops');

        $server->signal(\SIGKILL);
        $server->wait();

        Eventually::holds(static fn(): bool => !Processes::isAlive($worker), 'it is gone');
    }

    /** @return float seconds from SIGTERM to the end */
    private function stopAndMeasure(Process $server): float
    {
        $begin = hrtime(true);
        $server->signal(\SIGTERM);
        self::assertSame(0, $server->wait(), $server->getErrorOutput());

        return (hrtime(true) - $begin) / 1e9;
    }

    public function testAStuckProcessDoesNotPreventTheStop(): void
    {
        $server = $this->serve(self::UNRULY, ['--processes', '1', '--block-timeout', '0.4']);
        $this->client()->get('/loop');
        Eventually::holds(fn(): bool => file_exists($this->path('looping')), 'it loops');
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait());
        self::assertMatchesRegularExpression(
            '/ warning worker 1 \(pid \d+\) was killed, because its event loop was blocked for 0.4 s:'
                . ' .* before all received requests were answered$/m',
            $server->getErrorOutput(),
        );
    }
}
