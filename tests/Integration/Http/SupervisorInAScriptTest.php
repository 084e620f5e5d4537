<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop\UncaughtThrowable;
use Spindle\Http\AppException;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\ServerClosedException;
use Spindle\Http\Supervisor;
use Spindle\Http\SupervisorException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;
use Symfony\Component\Process\Process;

/** Scripts that use the event loop of their supervisor's process. */
#[RequiresPhpExtension('pcntl')]
final class SupervisorInAScriptTest extends ServeTestCase
{
    use CatchesThrown;

    /** Code of a script that has a server and a client, and closes both. */
    private const SERVES_ONCE = <<<'PHP'
        $server = new Spindle\Http\HttpServer(static fn() => Spindle\Http\Response::text('answered'));
        [$address] = $server->start('127.0.0.1:0');
        $client = new Spindle\Http\Client\HttpClient();
        $client->request('GET', str_replace('tcp:', 'http:', $address))->getBody()->getContents();
        $client->close();
        $server->close();
        PHP;

    private const PID = 'return static fn($request) => Spindle\Http\Response::text((string) getmypid());';

    /** @param 'close'|'kill' $end */
    #[DataProvider('ends')]
    public function testASupervisorThatWasEndedBeforeItStartedRefusesToStart(string $end): void
    {
        $supervisor = new Supervisor($this->path('app.php'), ["unix://{$this->path('socket')}"]);
        $end === 'close' ? $supervisor->close() : $supervisor->kill();

        $refused = self::thrown(ServerClosedException::class, static fn() => $supervisor->run());
        self::assertStringContainsString('Create another Supervisor', $refused->getMessage());
        self::assertFileDoesNotExist($this->path('socket'));
    }

    /** @return iterable<string, array{'close'|'kill'}> */
    public static function ends(): iterable
    {
        yield 'close' => ['close'];
        yield 'kill' => ['kill'];
    }

    /** @param 'close'|'kill' $end */
    #[DataProvider('ends')]
    public function testACallbackOfTheEventLoopEndsTheSupervisor(string $end): void
    {
        $server = $this->serveInScript(<<<PHP
            Revolt\\EventLoop::repeat(0.01, static function (string \$timer) use (\$supervisor): void {
                if (file_exists('go')) {
                    Revolt\\EventLoop::cancel(\$timer);
                    \$supervisor->{$end}();
                }
            });
            PHP);
        self::assertNotSame((string) $server->getPid(), $this->get()->body);
        touch($this->path('go'));

        self::assertSame(0, $server->wait(), $server->getErrorOutput());
        self::assertSame($end === 'close', $this->logged('Stopping: received requests are answered first'));
        self::assertFileDoesNotExist($this->path('socket'));
    }

    public function testASupervisorRunsOnceOnly(): void
    {
        $server = $this->serveInScript(<<<'PHP'
            Revolt\EventLoop::defer(static function () use ($supervisor): void {
                try {
                    $supervisor->run();
                } catch (LogicException $refused) {
                    fwrite(STDERR, "refused: {$refused->getMessage()}\n");
                }
            });
            PHP, <<<'PHP'
            try {
                $supervisor->run();
            } catch (Spindle\Http\ServerClosedException $refused) {
                fwrite(STDERR, "refused: {$refused->getMessage()}\n");
            }
            PHP);
        $this->awaitLogged('refused: The supervisor is running already');
        $server->signal(\SIGTERM);
        self::assertSame(0, $server->wait(), $server->getErrorOutput());

        self::assertTrue($this->logged('refused: The supervisor is closed and can not run again'));
    }

    public function testASignalAfterCloseKills(): void
    {
        $this->app(<<<'PHP'
            return static function ($request) {
                touch(__DIR__ . '/handling');
                Amp\delay(60);
            };
            PHP);
        $server = $this->serveInScript(<<<'PHP'
            Revolt\EventLoop::repeat(0.01, static function (string $timer) use ($supervisor): void {
                if (file_exists('handling')) {
                    Revolt\EventLoop::cancel($timer);
                    $supervisor->close();
                }
            });
            PHP);
        $this->client()->get('/');
        $this->awaitLogged('Stopping: received requests are answered first');
        $server->signal(\SIGTERM);

        self::assertSame(\SIGTERM, $server->wait(), $server->getErrorOutput());
    }

    public function testAProcessOfTheSupervisorCanNotEndIt(): void
    {
        $this->app(<<<'PHP'
            return static function ($request) {
                $GLOBALS['supervisor']->kill();
                $GLOBALS['supervisor']->close();
                return Spindle\Http\Response::text((string) getmypid());
            };
            PHP);
        $this->serveInScript('');
        [$worker] = $this->workers();

        self::assertSame((string) $worker, $this->get()->body, (string) $this->serve?->getErrorOutput());
        self::assertSame((string) $worker, $this->get()->body);
        self::assertFalse($this->logged('Stopping'));
    }

    /** @param list<string> $php options of PHP */
    #[TestWith([[]])]
    #[TestWith([['-d', 'disable_functions=pcntl_fork']], 'without forks')]
    public function testAnExceptionOfACallbackIsLogged(array $php): void
    {
        $this->serveInScript(
            "Revolt\\EventLoop::delay(0.1, static fn() => throw new RuntimeException('of a {timer}'));",
            php: $php,
        );
        $this->awaitLogged('Uncaught {class}: of a \x7btimer\x7d');

        self::assertSame(200, $this->get()->status);
    }

    public function testAScriptThatHasWaitedBeforeCanServe(): void
    {
        $this->serveInScript('Amp\delay(0.01);');
        [$worker] = $this->workers();
        posix_kill($worker, \SIGKILL);

        Eventually::holds(fn(): bool => !\in_array($worker, $this->workers(), true), 'it is replaced');
        self::assertNotSame((string) $worker, $this->get()->body);
    }

    public function testProcessesKeepTheirSignalHandlersWhenTheScriptHasOthers(): void
    {
        $server = $this->serveInScript(<<<'PHP'
            Revolt\EventLoop::onSignal(SIGUSR1, static function (): void {
                fwrite(STDERR, "The script got SIGUSR1\n");
            });
            PHP);
        $server->signal(\SIGHUP); // so that the process is forked after the event loop has run
        $this->awaitLogged('Reloaded');
        $worker = (int) $this->get()->body;
        posix_kill($worker, \SIGUSR1); // as a service manager does, which signals all processes
        $server->signal(\SIGUSR1);
        $this->awaitLogged('The script got SIGUSR1');

        self::assertSame((string) $worker, $this->get()->body);
    }

    #[TestWith(['pcntl_signal'])]
    #[TestWith(['Revolt\EventLoop::onSignal'])]
    public function testTheScriptsHandlerOfSigtermHasNoEffectUntilTheSupervisorHasEnded(string $function): void
    {
        $server = $this->serveInScript(<<<PHP
            foreach ([SIGTERM, SIGUSR1] as \$signal) {
                {$function}(\$signal, static function (): void {
                    fwrite(STDERR, "The script's handler has run\n");
                });
            }
            PHP, <<<'PHP'
            posix_kill(getmypid(), SIGTERM);
            posix_kill(getmypid(), SIGUSR1);
            Amp\delay(0.01);
            PHP);
        self::assertFalse($this->logged("The script's handler has run")); // in no fork either
        self::assertFalse($this->logged('SIGINT stays ignored'));
        $server->signal(\SIGTERM);
        $this->awaitLogged('Stopping: received requests are answered first');

        self::assertSame(0, $server->wait(), $server->getErrorOutput());
        self::assertSame(2, $this->timesLogged("The script's handler has run"));
    }

    public function testTheScriptsHandlerOfSigtermHasNoEffectWhileTheFirstProcessLoadsTheApplication(): void
    {
        // The supervisor waits for the process by the time at which it gets the signal.
        $this->app('usleep(200_000); posix_kill(posix_getppid(), SIGTERM); ' . self::PID);
        $server = $this->startScript(
            'Revolt\EventLoop::onSignal(SIGTERM, static fn() => fwrite(STDERR, "The handler has run\n"));',
        );
        $this->awaitLogged('Stopping: received requests are answered first');

        self::assertSame(0, $server->wait(), $server->getErrorOutput());
        self::assertFalse($this->logged('The handler has run'));
    }

    public function testAScriptPrintsAfterASupervisorWithoutForks(): void
    {
        $script = $this->startScript(
            'Revolt\EventLoop::delay(0.1, static fn() => $supervisor->close());',
            'Amp\delay(0.01); echo "ended";',
            ['-d', 'disable_functions=pcntl_fork'],
        );

        self::assertSame(0, $script->wait(), $script->getErrorOutput());
        self::assertSame('ended', $script->getOutput());
    }

    /**
     * @param list<string>             $php     options of PHP
     * @param class-string<\Throwable> $failure
     */
    #[TestWith(['return 5;', [], AppException::class])]
    #[TestWith(['return 5;', ['-d', 'disable_functions=pcntl_fork'], AppException::class])]
    #[TestWith(['return 5;', ['-d', 'disable_functions=ini_set'], SupervisorException::class])]
    #[TestWith([
        'Revolt\EventLoop::setErrorHandler(static fn(Throwable $uncaught) => throw $uncaught);'
            . 'Revolt\EventLoop::queue(static fn() => throw new LogicException("no"));' . self::PID,
        ['-d', 'disable_functions=pcntl_fork'],
        UncaughtThrowable::class,
    ])]
    public function testAFailureLeavesNoSocketAndCapturesNoOutput(string $app, array $php, string $failure): void
    {
        $this->app($app);
        $script = $this->startScript(<<<'PHP'
            $options = new Spindle\Http\SupervisorOptions(processes: 1, memoryLimit: '64M');
            $supervisor = new Spindle\Http\Supervisor('app.php', ['unix://socket', '127.0.0.1:0'], $options, $log);
            try {
                $supervisor->run();
            } catch (Throwable $failure) { // with arguments in its trace, it keeps the listening sockets in memory
                echo $failure::class;
            }
            Amp\delay(0.01);
            $isSocket = static fn($stream): bool => stream_socket_get_name($stream, false) !== false;
            exit(file_exists('socket') || array_filter(get_resources('stream'), $isSocket) !== [] ? 1 : 0);
            PHP, php: ['-d', 'zend.exception_ignore_args=0', ...$php]);

        self::assertSame(0, $script->wait(), $script->getOutput() . $script->getErrorOutput());
        self::assertSame($failure, $script->getOutput());
    }

    #[TestWith([2048, 'its descriptors would be above 1023, which stream_select() can not watch'])]
    #[TestWith([100, 'failed to create sockets: [24]: Too many open files'])]
    public function testTheProcessesContinueIfTheSupervisorLacksDescriptorsForAnotherOne(int $limit, string $why): void
    {
        $server = $this->serveInScript("\$limit = {$limit};" . <<<'PHP'
            $hard = (int) posix_getrlimit()['hard openfiles'];
            posix_setrlimit(POSIX_RLIMIT_NOFILE, $limit, $hard === 0 ? -1 : $hard); // "unlimited" is -1
            $open = [];
            Revolt\EventLoop::repeat(0.01, static function () use (&$open): void {
                clearstatcache();
                if (file_exists('many') === ($open !== [])) {
                    return;
                }
                $isOpening = $open === [];
                while ($isOpening && count($open) < 1_030 && ($file = @fopen('/dev/null', 'r')) !== false) {
                    $open[] = $file;
                }
                $open = $isOpening ? $open : [];
                fwrite(STDERR, $isOpening ? "opened\n" : "closed\n");
            });
            PHP);
        $worker = $this->get()->body;
        touch($this->path('many'));
        $this->awaitLogged('opened');
        $server->signal(\SIGHUP);
        $this->awaitLogged('The reload failed, and the old processes continue: worker 1 could not be started:'
            . " no process can be forked: {$why}");
        self::assertSame($worker, $this->get()->body);

        unlink($this->path('many'));
        $this->awaitLogged('closed');
        $server->signal(\SIGHUP);
        $this->awaitLogged('Reloaded');
        self::assertNotSame($worker, $this->get()->body);
    }

    public function testAProcessIgnoresIdentifiersOfCallbacksOfTheScript(): void
    {
        $this->app(<<<'PHP'
            return static function ($request) {
                array_map(Revolt\EventLoop::cancel(...), $GLOBALS['identifiers']);
                return Spindle\Http\Response::text((string) getmypid());
            };
            PHP);
        $this->serveInScript(<<<'PHP'
            for ($identifiers = []; count($identifiers) < 100;) {
                $identifiers[] = Revolt\EventLoop::unreference(Revolt\EventLoop::repeat(60, static fn() => null));
            }
            PHP);
        $pid = $this->get()->body;

        self::assertSame($pid, $this->get()->body);
    }

    public function testAClientThatTheScriptHasUsedKeepsItsTimeoutsInAProcess(): void
    {
        $this->app(<<<'PHP'
            return static function ($request) {
                try {
                    $cancellation = new Amp\TimeoutCancellation(10);
                    $GLOBALS['client']->request('GET', $GLOBALS['silent'], cancellation: $cancellation);
                } catch (Throwable $failure) {
                    return Spindle\Http\Response::text($failure::class);
                }
            };
            PHP);
        $this->serveInScript(<<<'PHP'
            $options = new Spindle\Http\Client\RequestOptions(firstByteTimeout: 0.5);
            $client = new Spindle\Http\Client\HttpClient(new Spindle\Http\Client\HttpClientOptions(request: $options));
            $server = new Spindle\Http\HttpServer(static fn() => Spindle\Http\Response::text('answered'));
            [$address] = $server->start('127.0.0.1:0');
            $client->request('GET', str_replace('tcp:', 'http:', $address))->getBody()->getContents();
            $server->kill();
            $listener = stream_socket_server('tcp://127.0.0.1:0');
            $silent = 'http://' . stream_socket_get_name($listener, false);
            PHP);

        self::assertSame(RequestTimeoutException::class, $this->get()->body);
    }

    public function testAProcessSurvivesItsBackgroundWorkAlthoughTheScriptHasServedBefore(): void
    {
        $this->app(<<<'PHP'
            return static function ($request) {
                Spindle\Http\BackgroundWork::start(static fn() => touch(__DIR__ . '/done'));
                return Spindle\Http\Response::text((string) getmypid());
            };
            PHP);
        $this->serveInScript(self::SERVES_ONCE);
        $pid = $this->get()->body;
        Eventually::holds(fn(): bool => file_exists($this->path('done')), 'the work is done');

        self::assertSame($pid, $this->get()->body);
    }

    public function testAProcessSendsALongResponseAlthoughTheScriptHasServedBefore(): void
    {
        $this->app('return static fn() => Spindle\Http\Response::text(str_repeat("x", 10_000_000));');
        $this->serveInScript(self::SERVES_ONCE);

        self::assertSame(10_000_000, \strlen($this->get()->body));
    }

    public function testAProcessRunsItsDestructorsAlthoughTheScriptHasServedBefore(): void
    {
        $this->app(<<<'PHP'
            $object = new class {
                public function __destruct()
                {
                    touch(__DIR__ . '/destroyed');
                }
            };
            return static fn($request) => Spindle\Http\Response::text($object::class);
            PHP);
        $server = $this->serveInScript(self::SERVES_ONCE);
        $this->get();
        $server->signal(\SIGTERM);
        $server->wait();

        self::assertFileExists($this->path('destroyed'));
    }

    public function testProcessesDrawDifferentNumbersAlthoughTheScriptHasDrawnOne(): void
    {
        $this->app('return static fn($request) => Spindle\Http\Response::text((string) @lcg_value());');
        $server = $this->serveInScript('@lcg_value();');
        $drawn = [$this->get()->body];
        foreach ([1, 2] as $reloads) {
            $server->signal(\SIGHUP);
            $this->awaitLogged('Reloaded', $reloads);
            $drawn[] = $this->get()->body;
        }

        self::assertGreaterThan(1, \count(array_unique($drawn)));
    }

    /**
     * Serves app.php, or an application that answers with its pid, and returns when it does.
     *
     * @param list<string> $php options of PHP
     */
    private function serveInScript(string $before, string $after = '', array $php = []): Process
    {
        $server = $this->startScript($before, $after, $php);
        $this->awaitLogged('Listening on');
        $this->address = "unix://{$this->path('socket')}";

        return $server;
    }

    /**
     * @param string       $before PHP code before run(), with `$supervisor`
     * @param string       $after  PHP code after run()
     * @param list<string> $php    options of PHP
     */
    private function startScript(string $before, string $after = '', array $php = []): Process
    {
        if (!file_exists($this->path('app.php'))) {
            $this->app(self::PID);
        }
        $autoload = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        $script = $this->file('serve.php', <<<PHP
            <?php
            require '{$autoload}';
            \$log = Spindle\\Tests\\Http\\ServerProcess::logger();
            \$options = new Spindle\\Http\\SupervisorOptions(processes: 1);
            \$supervisor = new Spindle\\Http\\Supervisor('app.php', ['unix://socket'], \$options, \$log);
            {$before}
            \$status = \$supervisor->run();
            {$after}
            exit(\$status);
            PHP);
        $this->serve = $server = new Process([\PHP_BINARY, ...$php, $script], $this->path());
        $server->start();

        return $server;
    }
}
