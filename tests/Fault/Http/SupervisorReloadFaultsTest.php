<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Processes;

use function Amp\delay;

/** Reloads of broken code, and signals while code is loaded. */
#[RequiresPhpExtension('pcntl')]
final class SupervisorReloadFaultsTest extends ServeTestCase
{
    private const PID = 'return static fn($request) => Spindle\Http\Response::text((string) getmypid());';

    protected function deadline(): int
    {
        return 180;
    }

    /** @return iterable<string, array{string, string, 2?: list<string>}> new code, why the reload fails, options */
    public static function brokenCode(): iterable
    {
        yield 'it does not parse' => [
            "\$a = 1\nreturn 1;",
            'did not start: %s/app.php could not be parsed: syntax error, unexpected token "return" on line 3',
        ];
        yield 'it replaces the event loop' => [
            'Revolt\EventLoop::setDriver(new Revolt\EventLoop\Driver\StreamSelectDriver()); ' . self::PID,
            "did not start: %s/app.php replaced the event loop, which receives the supervisor's messages: remove the"
                . ' call of EventLoop::setDriver(). ',
        ];
        yield 'it throws' => [
            'throw new LogicException("no");',
            'did not start: %1$s/app.php threw LogicException: no (%1$s/app.php, line 2)',
        ];
        yield 'it returns nothing' => [
            '',
            'did not start: %s/app.php returned 1, as a file without a return statement does:'
                . ' it has to return a Psr\Http\Server\RequestHandlerInterface',
        ];
        yield 'it exits' => ['exit(0);', 'called exit()'];
        yield 'it can not be compiled' => [
            "\nbreak;",
            "failed: 'break' not in the 'loop' or 'switch' context (%s/app.php, line 3)",
        ];
        yield 'it dies' => ['posix_kill(getmypid(), SIGKILL);', 'was killed by signal 9'];
        yield 'it takes for ever' => ['for (;;);', 'did not start within 3 s', ['--start-timeout', '3']];
        yield 'it takes for ever, suspended' => [
            'Amp\delay(1000);',
            'did not start within 3 s',
            ['--start-timeout', '3'],
        ];
    }

    /** @param list<string> $options */
    #[DataProvider('brokenCode')]
    public function testTheOldCodeContinuesIfTheNewCodeFails(string $code, string $why, array $options = []): void
    {
        $server = $this->serve(self::PID, ['--processes', '2', ...$options]);
        $workers = $this->workers();
        $client = $this->client();
        $worker = $client->get('/')->response()->body;

        $this->app($code);
        $server->signal(\SIGHUP);
        $this->awaitLogged('The reload failed, and the old processes continue: worker 1 (pid ');

        self::assertStringContainsString(\sprintf(") {$why}", $this->path()), $server->getErrorOutput());
        Eventually::holds(fn(): bool => $this->workers() === $workers, 'the processes are those from before');
        self::assertSame($worker, $client->get('/')->response()->body, 'and their connections, too');

        $this->app('return static fn($request) => Spindle\Http\Response::text("new");');
        $server->signal(\SIGHUP);
        $this->awaitLogged(' Reloaded');
        Eventually::holds(fn(): bool => $this->get()->body === 'new', 'what was put right is loaded');
    }

    public function testAHalfWrittenAutoloaderFailsOnlyTheReload(): void
    {
        mkdir($this->path('composer'));
        $autoload = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        $prepended = $this->file(
            'prepended.php',
            "<?php require '{$autoload}'; (new Composer\\Autoload\\ClassLoader(__DIR__))->register();",
        );
        $server = $this->serve(
            self::PID,
            ['--processes', '1', '--listen', "unix://{$this->path('socket')}"],
            ['-d', "auto_prepend_file={$prepended}"],
        );
        [$worker] = $this->workers();
        $map = $this->file('composer/autoload_classmap.php', "<?php\nreturn [;\n");
        $server->signal(\SIGHUP);
        $this->awaitLogged('The reload failed, and the old processes continue: worker 1 (pid ');

        self::assertStringContainsString(
            ") failed: ParseError: syntax error, unexpected token \";\", expecting \"]\" ({$map}, line 2)\n",
            $server->getErrorOutput(),
        );
        self::assertSame((string) $worker, $this->get()->body, 'the file of its socket exists');
        posix_kill($worker, \SIGKILL);
        $this->awaitLogged('; another takes its place in ');
        unlink($map);
        self::assertNotSame((string) $worker, $this->get()->body);
    }

    public function testASignalDuringTheStartIsAReloadAfterIt(): void
    {
        $this->file('wait', '');
        $server = $this->start(
            'touch(__DIR__ . "/loading"); while (file_exists(__DIR__ . "/wait")) { usleep(1000); } ' . self::PID,
            ['--listen', '127.0.0.1:0', '--processes', '2'],
        );
        Eventually::holds(fn(): bool => file_exists($this->path('loading')), 'the application is loaded');
        $server->signal(\SIGHUP);
        $this->awaitLogged(' Reloading');
        unlink($this->path('wait'));

        $this->awaitLogged('Listening on ');
        $this->awaitLogged(' Reloaded');
    }

    public function testSignalsDuringAReloadRestartIt(): void
    {
        $server = $this->serve(
            'while (file_exists(__DIR__ . "/wait")) { usleep(1000); } ' . self::PID,
            ['--processes', '2'],
        );
        $workers = $this->workers();
        $this->file('wait', '');
        $server->signal(\SIGHUP);
        $this->awaitLogged(' Reloading');
        foreach (range(1, 3) as $time) {
            $server->signal(\SIGHUP);
            $this->awaitLogged(' Reloading again, instead of the reload in progress', $time);
        }
        Eventually::holds(fn(): bool => \count($this->workers()) === 3, 'one successor is left');
        unlink($this->path('wait'));

        $this->awaitLogged(' Reloaded');
        Eventually::holds(fn(): bool => \count($this->workers()) === 2, 'those before are gone');
        self::assertSame([], array_intersect($workers, $this->workers()));
        self::assertSame(1, $this->timesLogged(' Reloaded'));
        self::assertDoesNotMatchRegularExpression('/ (?:error|warning) /', $server->getErrorOutput());
    }

    /** @return iterable<string, array{string}> code of the first reload */
    public static function hangingCode(): iterable
    {
        yield 'it blocks' => ['for (;;);'];
        yield 'it is suspended' => ['Amp\delay(1000);'];
        yield 'the first process serves and the second hangs' => [
            'if (file_exists(__DIR__ . "/once")) { for (;;); } touch(__DIR__ . "/once"); ' . self::PID,
        ];
    }

    #[DataProvider('hangingCode')]
    public function testASignalDuringAReloadThatHangsLoadsTheNewestCodeAtOnce(string $code): void
    {
        $server = $this->serve(self::PID, ['--processes', '2']);
        $this->app("touch(__DIR__ . '/loading'); {$code}");
        $server->signal(\SIGHUP);
        Eventually::holds(fn(): bool => file_exists($this->path('loading')), 'a successor loads the application');
        $this->app('return static fn($request) => Spindle\Http\Response::text("new");');
        $server->signal(\SIGHUP);

        $this->awaitLogged(' Reloaded', 1, 10.0); // the code that hangs would have 30 s
        self::assertSame(['new', 'new', 'new', 'new'], array_map(fn(): string => $this->get()->body, range(1, 4)));
        self::assertStringNotContainsString('The reload failed', $server->getErrorOutput());
    }

    public function testAProcessThatDiesWhileTheCodeIsBrokenIsRestartedUntilTheCodeIsFixed(): void
    {
        $server = $this->serve(self::PID, ['--processes', '1']);
        [$worker] = $this->workers();
        $this->app('throw new LogicException("no");');
        posix_kill($worker, \SIGKILL);
        $this->awaitLogged('did not start: ', 2);
        $waiting = $this->client()->get('/');
        $this->app(self::PID);

        self::assertSame(200, $waiting->response()->status, 'new clients wait');
        self::assertTrue($server->isRunning());
    }

    public function testTheSupervisorSleepsDuringTheStopWhenAProcessIsMissing(): void
    {
        $server = $this->serve(<<<'PHP'
            return static function ($request) {
                touch(__DIR__ . '/' . getmypid());
                Amp\delay(60);
            };
            PHP, ['--processes', '2']);
        $workers = $this->workers();
        $this->client()->get('/');
        $isHandling = fn(int $pid): bool => file_exists($this->path((string) $pid));
        Eventually::holds(static fn(): bool => array_filter($workers, $isHandling) !== [], 'a request is handled');
        $this->app('throw new LogicException("no");');
        $idle = array_values(array_filter($workers, static fn(int $pid): bool => !$isHandling($pid)));
        posix_kill($idle[0], \SIGKILL);
        $this->awaitLogged('did not start: '); // another one starts in at most 0.3 s
        $server->signal(\SIGTERM);
        $this->awaitLogged('Stopping: received requests are answered first');
        $used = \PHP_INT_MAX;
        for ($second = 0; $second < 3 && $used > 10; ++$second) {
            $before = Processes::processorTime((int) $server->getPid());
            delay(1.0); // the claim is relative to this second
            $used = Processes::processorTime((int) $server->getPid()) - $before;
        }

        self::assertLessThanOrEqual(10, $used, 'hundredths of a second');
    }

    public function testAStopDuringTheStartStopsTheServer(): void
    {
        $server = $this->start(
            'touch(__DIR__ . "/loading"); sleep(1000);',
            ['--listen', '127.0.0.1:0', '--processes', '2'],
        );
        Eventually::holds(fn(): bool => file_exists($this->path('loading')), 'the application is loaded');
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait(), $server->getErrorOutput());
    }

    public function testAStopDuringAReloadStopsTheServer(): void
    {
        $server = $this->serve(self::PID, ['--processes', '2']);
        $this->app('touch(__DIR__ . "/loading"); sleep(1000);');
        $server->signal(\SIGHUP);
        Eventually::holds(fn(): bool => file_exists($this->path('loading')), 'the application is loaded');
        $client = $this->client()->get('/');
        self::assertSame(200, $client->response()->status);
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait());
        self::assertStringNotContainsString(' error ', $server->getErrorOutput());
    }
}
