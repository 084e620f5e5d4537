<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;

/** Logs name the request that ended a process, and its position in the code. */
#[RequiresPhpExtension('pcntl')]
final class SupervisorBlameTest extends ServeTestCase
{
    /** Each path has its own line: line 8 for /loop. */
    private const APP = <<<'PHP'
        return new Spindle\Http\Application(static function ($request) {
            $fillMemory = static function (): never {
                ini_set('memory_limit', '64M');
                for ($all = []; ;) { $all[] = str_repeat('x', 100_000); }
            };
            switch ($request->getUri()->getPath()) {
                case '/loop': touch(__DIR__ . '/began'); for (;;);
                case '/sleep': touch(__DIR__ . '/began'); sleep(60); file_put_contents(__DIR__ . '/went-on', ''); break;
                case '/lock':
                    $files = [fopen(__FILE__, 'r'), fopen(__FILE__, 'r')];
                    flock($files[0], LOCK_EX);
                    flock($files[1], LOCK_EX); file_put_contents(__DIR__ . '/went-on', ''); break;
                case '/stop': posix_kill(getmypid(), SIGSTOP); break;
                case '/memory': $fillMemory();
                case '/memory-later': Amp\delay(0.05); $fillMemory();
                case '/exit-later': Amp\delay(0.05); exit(3);
                case '/stream':
                    $body = static function () { yield 'a'; for (;;); };
                    return Spindle\Http\Response::stream($body(), 'text/plain');
                case '/async': Amp\async(static function () { Amp\delay(0.05); for (;;); })->await();
                case '/wait': touch(__DIR__ . '/waits'); Amp\delay(20); break;
                case '/work': Spindle\Http\BackgroundWork::start(static function () {
                    Amp\delay(0.01); touch(__DIR__ . '/began'); for (;;); });
            }
            return Spindle\Http\Response::text((string) getmypid());
        }, options: new Spindle\Http\HttpServerOptions(stopTimeout: 0.3));
        PHP;

    private const BLOCKED = 'was killed, because its event loop was blocked for 0.5 s: a handler does not return';

    /** @return iterable<string, array{string, string}> the target, the logged position */
    public static function blocks(): iterable
    {
        yield 'PHP code' => ['/loop?a=1', '%s/app.php, line 8 while it handled GET /loop?a=1'];
        yield 'a function that waits' => ['/sleep', '%s/app.php, line 9 while it handled GET /sleep'];
        yield 'a system call that would be continued' => ['/lock', '%s/app.php, line 13 while it handled GET /lock'];
        yield 'the body of an answer' => ['/stream', '%s/app.php, line 19 while it handled GET /stream'];
        yield 'a fiber that the handler started' => [
            '/async',
            '%s/app.php, line 21 while these requests were open: GET /async',
        ];
        yield 'a process that was stopped' => [
            '/stop',
            'its position is unknown: the process was suspended (SIGSTOP), or waits in a PHP function,'
                . ' for example for a lock or a database',
        ];
        yield 'a target that is long' => [
            '/loop?' . str_repeat('a', 5_000),
            '%s/app.php, line 8 while it handled GET /loop?' . str_repeat('a', 194) . '...',
        ];
    }

    #[DataProvider('blocks')]
    public function testWhatBlocksTheEventLoopIsNamed(string $target, string $place): void
    {
        $this->serve(self::APP, ['--processes', '1', '--block-timeout', '0.5']);
        $this->client()->get($target);

        $this->awaitLogged(self::BLOCKED . ' (' . \sprintf($place, $this->path()) . '); another takes its place');
        self::assertSame(200, $this->get()->status);
        self::assertFileDoesNotExist($this->path('went-on'));
    }

    public function testWorkAfterTheAnswerThatBlocksTheEventLoopIsNamed(): void
    {
        $this->serve(self::APP, ['--processes', '1', '--block-timeout', '0.5']);
        self::assertSame(200, $this->get('/work')->status);

        $this->awaitLogged(
            str_replace('a handler', 'a function of BackgroundWork', self::BLOCKED)
                . " ({$this->path('app.php')}, line 24 in a function of BackgroundWork); another takes its place",
        );
    }

    public function testWorkAfterTheAnswerThatDelaysTheEndIsNamed(): void
    {
        $server = $this->serve(self::APP, ['--processes', '1']);
        self::assertSame(200, $this->get('/work')->status);
        Eventually::holds(fn(): bool => file_exists($this->path('began')), 'it loops');
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait());
        self::assertTrue(
            $this->logged(
                'did not end in time: a function of BackgroundWork blocks its event loop, or the process was suspended'
                    . " (SIGSTOP) ({$this->path('app.php')}, line 24 in a function of BackgroundWork)",
            ),
            $server->getErrorOutput(),
        );
    }

    public function testAHandlerThatBlocksForLessTimeIsNotDisturbed(): void
    {
        $this->serve(
            str_replace('sleep(60)', 'usleep(700_000)', self::APP),
            ['--processes', '1', '--block-timeout', '1'],
        );
        $begun = hrtime(true);

        self::assertSame(200, $this->get('/sleep')->status);
        self::assertGreaterThan(0.69, (hrtime(true) - $begun) / 1e9);
    }

    public function testTheRequestThatExhaustedTheMemoryIsNamed(): void
    {
        $this->serve(self::APP, ['--processes', '1']);
        foreach (['/memory', '/memory-later'] as $target) {
            $waiting = [$this->client()->get('/wait?1'), $this->client()->get('/wait?2')];
            Eventually::holds(fn(): bool => file_exists($this->path('waits')), 'others wait');
            $this->client()->get($target)->rest();

            $this->awaitLogged(
                "({$this->path('app.php')}, line 5) while it handled GET {$target};"
                    . ' --memory-limit sets this limit; another takes its place',
            );
            self::assertSame([500, 500], [$waiting[0]->response()->status, $waiting[1]->response()->status]);
            self::assertSame(200, $this->get()->status);
        }
    }

    public function testTheRequestThatExitedIsNamed(): void
    {
        $this->serve(self::APP, ['--processes', '1']);
        $this->client()->get('/wait');
        $this->client()->get('/exit-later')->rest();

        $this->awaitLogged(' called exit() while it handled GET /exit-later; another takes its place');
    }

    #[TestWith(['pcntl_fork()', ' error A function of BackgroundWork forked process '])]
    #[TestWith(['exit(3)', ' called exit() in a function of BackgroundWork; another takes its place'])]
    #[TestWith(['array_fill(0, 1 << 24, 1)', ') in a function of BackgroundWork; --memory-limit sets this limit;'])]
    public function testWorkAfterTheAnswerThatEndsTheProcessIsNamed(string $end, string $entry): void
    {
        $this->serve(<<<PHP
            return static function () {
                Spindle\\Http\\BackgroundWork::start(static function () { Amp\\delay(0.05); {$end}; });
                return Spindle\\Http\\Response::text('');
            };
            PHP, ['--processes', '1', '--memory-limit', '128M']);
        self::assertSame(200, $this->get()->status);

        $this->awaitLogged($entry);
    }

    public function testAForkThatWaitsInAHandlerDoesNotRunTheBackgroundWorkOfItsParent(): void
    {
        $this->serve(<<<'PHP'
            return static function ($request) {
                if ($request->getRequestTarget() !== '/fork') {
                    return Spindle\Http\Response::text('');
                }
                Spindle\Http\BackgroundWork::start(static function () {
                    file_put_contents(__DIR__ . '/runs', getmypid() . "\n", FILE_APPEND);
                });
                if (pcntl_fork() === 0) {
                    Amp\delay(0.05);
                }
                return Spindle\Http\Response::text((string) getmypid());
            };
            PHP, ['--processes', '1']);
        $pid = $this->get('/fork')->body;
        $this->awaitLogged(' forked process ');
        $hasRun = fn(): bool => is_file($this->path('runs')) && file_get_contents($this->path('runs')) !== '';
        Eventually::holds($hasRun, 'the function runs');

        self::assertSame("{$pid}\n", file_get_contents($this->path('runs')));
    }

    #[TestWith(['exit', ' called exit() while it handled GET /late; another takes its place'])]
    #[TestWith(['ini_set("memory_limit", "64M") && array_fill(0, 1 << 24, 1)', ' while it handled GET /late;'])]
    public function testARequestThatWasAnsweredBeforeItsHandlerEndedTheProcessIsNamed(string $end, string $entry): void
    {
        $this->serve(<<<PHP
            \$handler = static function (\$request) {
                try {
                    Amp\\delay(60, true, \$request->getAttribute(Amp\\Cancellation::class));
                } finally {
                    \$request->getUri()->getPath() === '/late' ? {$end} : Amp\\delay(60);
                }
            };
            \$options = new Spindle\\Http\\HttpServerOptions(handlerTimeout: 0.1);
            return new Spindle\\Http\\Application(\$handler, options: \$options);
            PHP, ['--processes', '1']);
        self::assertSame(503, $this->get('/other')->status);
        self::assertSame(503, $this->get('/late')->status);

        $this->awaitLogged($entry);
    }

    public function testTheRequestThatDelaysTheEndIsNamed(): void
    {
        $server = $this->serve(self::APP, ['--processes', '1']);
        $this->client()->get('/loop');
        Eventually::holds(fn(): bool => file_exists($this->path('began')), 'it loops');
        $server->signal(\SIGTERM);

        self::assertSame(0, $server->wait());
        self::assertTrue(
            $this->logged(
                "or the process was suspended (SIGSTOP) ({$this->path('app.php')}, line 8 while it handled GET /loop)"
                    . ' before all received requests were answered',
            ),
            $server->getErrorOutput(),
        );
    }

    public function testAFailedStartIsNamed(): void
    {
        $server = $this->start("for (;;);\n", ['--listen', '127.0.0.1:0', '--start-timeout', '0.3']);

        self::assertSame(254, $server->wait());
        self::assertStringContainsString(
            "did not start within 0.3 s, the limit of --start-timeout ({$this->path('app.php')}, line 2)",
            $server->getErrorOutput(),
        );
    }

    public function testAWaitAtTheStartIsNamed(): void
    {
        $server = $this->start("\nsleep(60);\n\n\$a = 1;\n", ['--listen', '127.0.0.1:0', '--start-timeout', '0.3']);

        self::assertSame(254, $server->wait());
        $position = \PHP_VERSION_ID < 80400 ? 'line 5, after sleep() in line 3' : 'line 3';
        self::assertStringContainsString(" ({$this->path('app.php')}, {$position})\n", $server->getErrorOutput());
    }
}
