<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;

/** Output of handlers in `spindle serve`, and the output buffers that they open. */
#[RequiresPhpExtension('pcntl')]
final class ServeOutputTest extends ServeTestCase
{
    /** Runs a command whose standard output is a pipe without a reader. */
    private const UNREAD = ['bash', '-c', 'exec "$@" > >(exec true)', 'bash'];

    private const PRINTING = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            $query = $request->getUri()->getQuery();
            switch ($request->getUri()->getPath()) {
                case '/echo': echo "hello {$query}"; break;
                case '/output': file_put_contents('php://output', 'written'); break;
                case '/dump': var_dump(['a' => 1]); break;
                case '/warning':
                    ini_set('display_errors', '1');
                    set_error_handler(null);
                    trigger_error('A warning', E_USER_WARNING);
                    restore_error_handler();
                    break;
                case '/stdout': @fwrite(STDOUT, "to standard output\n"); break;
                case '/run': passthru('printf passed'); break;
                case '/large': echo str_repeat('x', 20_000_000); break;
                case '/later': Revolt\EventLoop::delay(0.001, static fn() => print('later')); break;
                case '/wait': echo 'before '; Amp\delay(0.05); echo 'after'; break;
                case '/stream':
                    $pieces = static function () {
                        echo 'streaming';
                        yield 'piece';
                    };
                    return Spindle\Http\Response::stream($pieces(), 'text/plain');
                case '/leave': ob_start(); echo 'left'; ob_start(); break;
                case '/close': while (ob_get_level() > 0) { ob_end_clean(); } break;
                case '/contents': return Spindle\Http\Response::text(ob_get_level() . ob_get_contents());
                case '/template':
                    ob_start();
                    echo "<{$query}>";
                    Amp\delay((float) $query);
                    echo "</{$query}>";
                    return Spindle\Http\Response::text((string) ob_get_clean());
                case '/callback':
                    ob_start(static fn(string $bytes): string => strtoupper($bytes));
                    echo 'x';
                    $query === '' ? null : Amp\delay(0.01);
                    return Spindle\Http\Response::text((string) ob_get_clean());
                case '/nested':
                    ob_start();
                    echo 'outer';
                    (new Fiber(static function (): void {
                        try {
                            Amp\delay(0.01);
                        } catch (LogicException $e) {
                            echo ' ', get_class($e);
                        }
                    }))->start();
                    return Spindle\Http\Response::text((string) ob_get_clean());
                case '/pid': return Spindle\Http\Response::text((string) getmypid());
                case '/memory': return Spindle\Http\Response::text((string) memory_get_usage());
            }
            return Spindle\Http\Response::text('answered');
        };
        PHP;

    public function testEntriesAboutTheHandlersCodeHaveTheIdOfItsRequest(): void
    {
        $this->serve(<<<'PHP'
            return new Spindle\Http\MiddlewareStack(static function ($request): Spindle\Http\Response {
                echo 'printed';
                error_log('reported');
                trigger_error('warned', E_USER_WARNING);
                ob_start();
                return Spindle\Http\Response::text('answered');
            }, new Spindle\Http\Middleware\RequestId());
            PHP, ['--processes', '1']);
        $ids = [
            $this->get('/same')->headers['x-request-id'][0],
            $this->get('/same')->headers['x-request-id'][0],
        ];
        $this->awaitLogged('printed 7 bytes', 2);
        foreach (['printed 7 bytes', 'error reported', 'PHP: warned', 'left output buffers'] as $text) {
            $log = (string) $this->serve?->getErrorOutput();
            preg_match_all("/ {$text}.* \(request id (\w+)\)$/m", $log, $logged);
            self::assertSame($ids, $logged[1], $text);
        }
    }

    public function testEntriesAboutALateHandlersCodeHaveTheIdOfItsRequest(): void
    {
        $this->serve(<<<'PHP'
            $handler = new Spindle\Http\MiddlewareStack(static function ($request): never {
                try {
                    Amp\delay(60, true, $request->getAttribute(Amp\Cancellation::class));
                } finally {
                    echo 'printed';
                    error_log('reported');
                }
            }, new Spindle\Http\Middleware\RequestId());
            $options = new Spindle\Http\HttpServerOptions(handlerTimeout: 0.1);
            return new Spindle\Http\Application($handler, options: $options);
            PHP, ['--processes', '1']);
        self::assertSame(503, $this->get()->status);

        $this->awaitLogged('did not answer within');
        $this->awaitLogged('printed 7 bytes');
        $log = (string) $this->serve?->getErrorOutput();
        preg_match_all('/ (?:did not answer|printed 7 bytes|error reported).* \(request id (\w+)\)$/m', $log, $logged);
        self::assertCount(3, $logged[1], $log);
        self::assertCount(1, array_unique($logged[1]), $log);
    }

    /** @return iterable<string, array{string, string}> the target, the log entry after its name */
    public static function prints(): iterable
    {
        yield 'echo' => ['/echo', 'printed 6 bytes outside of a response: hello '];
        yield 'php://output' => ['/output', 'printed 7 bytes outside of a response: written'];
        yield 'var_dump()' => [
            '/dump',
            'printed 32 bytes outside of a response: array(1) {\n  ["a"]=>\n  int(1)\n}\n',
        ];
        yield 'a warning that PHP displays' => [
            '/warning',
            'bytes outside of a response: \nWarning: A warning in ',
        ];
        yield 'a command' => ['/run', 'printed 6 bytes outside of a response: passed'];
        yield 'before and after it waits' => ['/wait', 'printed 5 bytes outside of a response: after'];
    }

    public function testOutputOfAHandlerIsLoggedWithItsRequest(): void
    {
        $this->serve(self::PRINTING, ['--processes', '1'], [], self::UNREAD);
        $worker = $this->get('/pid')->body;
        foreach (self::prints() as [$target, $entry]) {
            self::assertSame('answered', $this->get($target)->body);
            $this->awaitLogged("[{$worker}] warning The handler of GET {$target} ");
            $this->awaitLogged($entry);
        }
        self::assertSame('piece', $this->get('/stream')->body);
        $this->awaitLogged('The handler of GET /stream printed 9 bytes outside of a response: streaming');
        self::assertSame('answered', $this->get('/later')->body);
        $this->awaitLogged(
            'Code outside of a request printed 5 bytes outside of a response: later',
        );

        self::assertSame($worker, $this->get('/pid')->body, 'the process is the same');
    }

    public function testUnreadStandardOutputEndsNoProcess(): void
    {
        $this->serve(self::PRINTING, ['--processes', '1'], [], self::UNREAD);
        $worker = $this->get('/pid')->body;
        foreach (['/stdout', '/close', '/echo', '/stdout'] as $target) {
            self::assertSame('answered', $this->get($target)->body);
        }

        self::assertSame($worker, $this->get('/pid')->body, 'the process is the same');
    }

    public function testBytesWrittenToStdoutArriveThere(): void
    {
        $server = $this->serve(self::PRINTING, ['--processes', '1']);
        $this->get('/stdout');
        $this->get('/echo');

        Eventually::holds(
            static fn(): bool => $server->getOutput() === "to standard output\n",
            'the log has this entry and no other',
        );
    }

    public function testOutputDuringTheLoadOfTheApplicationIsLogged(): void
    {
        $this->serve("echo 'loading';\n" . self::PRINTING, ['--processes', '1'], [], self::UNREAD);

        self::assertSame('answered', $this->get()->body);
        $this->awaitLogged(
            'Code outside of a request printed 7 bytes outside of a response: loading',
        );
    }

    public function testLoggedOutputIsLimitedAndNotKept(): void
    {
        $server = $this->serve(self::PRINTING, ['--processes', '1']);
        $before = (int) $this->get('/memory')->body;
        self::assertSame('answered', $this->get('/large')->body);
        $this->awaitLogged('The handler of GET /large printed 20000000 bytes');

        self::assertLessThan(2_000, max(array_map(strlen(...), explode("\n", $server->getErrorOutput()))));
        self::assertLessThan($before + 1_000_000, (int) $this->get('/memory')->body);
    }

    public function testEntriesPerMinuteAreLimited(): void
    {
        $server = $this->serve(self::PRINTING, ['--processes', '1']);
        for ($i = 0; $i < 30; ++$i) {
            $this->get("/echo?{$i}");
        }
        $server->signal(\SIGTERM);
        $server->wait();

        self::assertSame(
            10,
            $this->timesLogged(' bytes outside of a response'),
            $server->getErrorOutput(),
        );
        self::assertSame(
            1,
            $this->timesLogged('20 more entries about printed output were left out'),
            $server->getErrorOutput(),
        );
    }

    public function testOpenBuffersOfAHandlerAreClosed(): void
    {
        $this->serve(self::PRINTING, ['--processes', '1']);
        self::assertSame('answered', $this->get('/leave')->body);

        self::assertSame('1', $this->get('/contents')->body);
        $this->awaitLogged(
            'The handler of GET /leave left output buffers of ob_start() open',
        );
    }

    public function testOpenBuffersOfTheLoadedApplicationAreClosed(): void
    {
        $this->serve("ob_start();\n" . self::PRINTING, ['--processes', '1']);
        $this->awaitLogged(
            'Code outside of a request left output buffers of ob_start() open',
        );

        self::assertSame('1', $this->get('/contents')->body);
        self::assertSame('answered', $this->get('/echo')->body);
        $this->awaitLogged('The handler of GET /echo printed 6 bytes');
    }

    public function testOutputIsLoggedAlsoAfterAHandlerHasClosedAllBuffers(): void
    {
        $server = $this->serve(self::PRINTING, ['--processes', '1']);
        self::assertSame('answered', $this->get('/close')->body);
        self::assertSame('answered', $this->get('/echo?after')->body);

        $this->awaitLogged('GET /echo?after printed 11 bytes');
        self::assertSame('', $server->getOutput());
    }

    /** @param list<string> $php options of PHP */
    #[TestWith([['-d', 'output_buffering=4096']])]
    #[TestWith([['-d', 'output_handler=ob_gzhandler', '-d', 'disable_functions=pcntl_fork']])]
    public function testBuffersThatAreOpenAtTheStartAreClosed(array $php): void
    {
        $this->assertLogsOutput($php, '');
    }

    public function testOutputInABufferThatIsOpenAtTheStartIsPrintedOnce(): void
    {
        $file = $this->path('prepended.php');
        file_put_contents($file, '<?php ob_start(); echo "prepended";');

        $this->assertLogsOutput(['-d', "auto_prepend_file={$file}"], 'prepended');
    }

    /** @param list<string> $php options of PHP */
    private function assertLogsOutput(array $php, string $printed): void
    {
        $server = $this->serve(self::PRINTING, ['--processes', '1'], $php);
        self::assertSame('answered', $this->get('/wait')->body);

        $this->awaitLogged('The handler of GET /wait printed 7 bytes');
        $server->signal(\SIGTERM);
        $server->wait();
        self::assertSame($printed, $server->getOutput());
        self::assertSame(0, $this->timesLogged('left output buffers of ob_start() open'));
    }

    public function testOutputOfSuspendedTemplatesIsKeptApart(): void
    {
        $this->serve(self::PRINTING, ['--processes', '1']);
        $clients = [];
        foreach (['0.09', '0.05', '0.07', '0.06', '0.08'] as $seconds) {
            $clients[$seconds] = $this->client()->get("/template?{$seconds}");
        }
        $this->get('/echo');

        foreach ($clients as $seconds => $client) {
            self::assertSame("<{$seconds}></{$seconds}>", $client->response()->body);
        }
        self::assertSame(0, $this->timesLogged('left output buffers of ob_start() open'));
    }

    public function testAHandlerWithABufferThatCanNotBeSetAsideCanNotSuspend(): void
    {
        $server = $this->serve(self::PRINTING, ['--processes', '1']);

        self::assertSame('x', strtolower($this->get('/callback')->body), 'it does not wait');
        self::assertSame(500, $this->get('/callback?wait')->status);
        $this->awaitLogged(
            'The handler of GET /callback?wait failed: This fiber cannot wait while its output buffer has a callback',
        );
        self::assertSame('outer LogicException', $this->get('/nested')->body);
        self::assertSame('1', $this->get('/contents')->body);
        self::assertTrue($server->isRunning());
    }

    public function testAJsonLogHasOnlyJson(): void
    {
        $server = $this->start(
            self::PRINTING,
            ['--listen', 'unix://socket', '--processes', '1', '--log-format', 'json'],
        );
        $this->awaitLogged('Listening on');
        $this->get('/echo?' . rawurlencode('"{printer}'), "unix://{$this->path('socket')}");
        $server->signal(\SIGTERM);
        $server->wait();

        foreach (explode("\n", rtrim($server->getErrorOutput())) as $line) {
            self::assertIsArray(json_decode($line, true), $line);
        }
        self::assertTrue($this->logged('hello %22%7Bprinter%7D'));
    }
}
