<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Nyholm\Psr7\ServerRequest;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Log\AbstractLogger;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\AccessLogEntry;
use Spindle\Http\Middleware\AccessLog;
use Spindle\Http\Middleware\AccessLogException;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\ReadsErrorLog;
use Spindle\Tests\Streams;
use Spindle\Tests\Text;

final class AccessLogTest extends TestCase
{
    use CatchesThrown;
    use LeavesNothing;
    use ReadsErrorLog;

    private const DATE = '\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]';

    public function testALoggerGetsTheLineAndItsFields(): void
    {
        $records = new Records();
        $request = (new ServerRequest(
            'GET',
            '/a?b=c',
            ['User-Agent' => 'curl', 'Referer' => 'http://x/'],
        ))->withAttribute('client-ip', '203.0.113.9')->withAttribute('request-id', 'id7');
        $log = AccessLog::toLogger($records);
        $log->process($request, new Handler());

        self::assertSame(0, $log->lostLines());
        self::assertCount(1, $records->all);
        ['level' => $level, 'message' => $message, 'context' => $context] = $records->all[0];
        self::assertSame('info', $level);
        self::assertMatchesRegularExpression(
            '@^203\.0\.113\.9 - - ' . self::DATE . ' "GET /a\?b=c HTTP/1\.1" 200 6 "http://x/" "curl"$@D',
            $message,
        );
        self::assertIsFloat($context['duration']);
        self::assertGreaterThan(0.0, $context['duration']);
        self::assertLessThan(60.0, $context['duration']);
        unset($context['duration']);
        self::assertSame([
            'method' => 'GET', 'target' => '/a?b=c', 'status' => 200, 'bytes' => 6,
            'client_ip' => '203.0.113.9', 'request_id' => 'id7', 'user_agent' => 'curl', 'referer' => 'http://x/',
        ], $context);
    }

    public function testARequestWithoutAServerIsInPhpsErrorLog(): void
    {
        $request = new ServerRequest('GET', '/a');
        $logged = $this->errorLogOf(
            static fn(): mixed => AccessLog::toServerLogger()->process($request, new Handler()),
        );

        self::assertCount(1, $logged);
        self::assertStringContainsString('"GET /a HTTP/1.1" 200 6 "-" "-"', $logged[0]);
    }

    public function testALoggerThatFillsInBracesCantBeMadeToForgeALine(): void
    {
        $records = new Records();
        AccessLog::toLogger($records)->process(
            new ServerRequest('GET', '/', ['User-Agent' => '{referer}']),
            new Handler(),
        );

        self::assertStringEndsWith(' "\x7breferer\x7d"', $records->all[0]['message']);
    }

    public function testWithoutTheAttributeClientIpThePeerIsLogged(): void
    {
        $request = new ServerRequest('GET', '/', serverParams: ['REMOTE_ADDR' => '192.0.2.1']);

        self::assertStringStartsWith('192.0.2.1 - - [', $this->lineOf($request, new Response()));
        self::assertStringStartsWith('- - - [', $this->lineOf(new ServerRequest('GET', '/'), new Response()));
    }

    /** @return iterable<string, array{string, Response, string}> */
    public static function sizes(): iterable
    {
        $stream = static fn(): Response => Response::stream(['abc', 'de']);
        yield 'a string' => ['GET', Response::text('abc'), '200 3'];
        yield 'nothing' => ['GET', Response::text(''), '200 -'];
        yield 'a stream' => ['GET', $stream(), '200 -'];
        yield 'a stream with its length' => ['GET', $stream()->withHeader('Content-Length', '5'), '200 5'];
        yield 'a length that is none' => ['GET', Response::text('abc')->withHeader('Content-Length', 'many'), '200 3'];
        yield 'HEAD' => ['HEAD', Response::text('abc')->withHeader('Content-Length', '3'), '200 -'];
        yield '204' => ['GET', Response::text('abc', 204), '204 -'];
        yield '205' => ['GET', Response::text('abc', 205), '205 -'];
        yield '304' => ['GET', Response::text('', 304, ['Content-Length' => '5']), '304 -'];
        yield 'an error' => ['GET', Response::text('abcd', 404), '404 4'];
    }

    #[DataProvider('sizes')]
    public function testTheSizeIsWhatIsSent(string $method, Response $response, string $logged): void
    {
        self::assertStringContainsString("\" {$logged} \"", $this->lineOf(new ServerRequest($method, '/'), $response));
    }

    public function testAPipeHasNoKnownSize(): void
    {
        $records = new Records();
        $response = new Response(200, [], Stream::create(Streams::pair()[0]));
        AccessLog::toLogger($records)->process(new ServerRequest('GET', '/'), new Handler($response));

        self::assertNull($records->all[0]['context']['bytes']);
    }

    public function testTheResponseIsPassedOnUnchanged(): void
    {
        $response = Response::text('abc');
        $log = AccessLog::toLogger(new Records());

        self::assertSame($response, $log->process(new ServerRequest('GET', '/'), new Handler($response)));
        self::assertSame('abc', $response->body(), 'The string is still one');
    }

    /** @return iterable<string, array{\Throwable, int}> */
    public static function failures(): iterable
    {
        yield 'one that is meant' => [new HttpException(404), 404];
        yield 'any other' => [new \TypeError(), 500];
    }

    #[DataProvider('failures')]
    public function testWhatAHandlerThrowsIsLoggedAsItWillBeAnswered(\Throwable $thrown, int $status): void
    {
        $records = new Records();
        $caught = self::thrown(
            \Throwable::class,
            static fn() => AccessLog::toLogger($records)->process(new ServerRequest('GET', '/'), new Handler($thrown)),
        );
        self::assertSame($thrown, $caught);

        self::assertSame(
            [$status, null],
            [$records->all[0]['context']['status'] ?? null, $records->all[0]['context']['bytes'] ?? null],
        );
    }

    public function testAClientThatHasLeftWasNotAnswered(): void
    {
        $records = new Records();
        self::thrown(
            ClientDisconnectedException::class,
            static fn() => AccessLog::toLogger($records)->process(
                new ServerRequest('GET', '/'),
                new Handler(ClientDisconnectedException::closed()),
            ),
        );
        self::assertSame([], $records->all);
    }

    public function testLinesAreAppendedToAFile(): void
    {
        $path = $this->file('access.log', "before\n");
        foreach (['/a', '/b'] as $target) {
            AccessLog::toFile($path)->process(new ServerRequest('GET', $target), new Handler());
        }
        $lines = Text::lines($path);

        self::assertSame('before', $lines[0]);
        self::assertStringContainsString('"GET /a HTTP/1.1"', $lines[1]);
        self::assertStringContainsString('"GET /b HTTP/1.1"', $lines[2]);
        self::assertCount(3, $lines);
    }

    public function testSeveralWritersToAFileDoNotMixTheirLines(): void
    {
        $path = $this->path('access.log');
        $logs = [AccessLog::toFile($path), AccessLog::toFile($path)];
        for ($i = 0; $i < 100; ++$i) {
            $logs[$i % 2]->process(
                new ServerRequest('GET', "/{$i}", ['Referer' => str_repeat('r', 20_000)]),
                new Handler(),
            );
        }
        $lines = Text::lines($path);

        self::assertCount(100, $lines);
        self::assertSame(
            [],
            preg_grep(
                '@^- - - ' . self::DATE . ' "GET /\d+ HTTP/1\.1" 200 6 "r{20000}" "-"$@D',
                $lines,
                \PREG_GREP_INVERT,
            ),
        );
    }

    public function testAFileIsNotHandedOnToCommands(): void
    {
        $log = AccessLog::toFile($this->path('access.log'));
        $process = proc_open(['readlink', ...self::descriptors()], [1 => ['pipe', 'w']], $pipes);
        \assert($process !== false && isset($pipes[1]) && \is_resource($pipes[1]));
        $seen = (string) stream_get_contents($pipes[1]);
        proc_close($process);

        self::assertNotSame('', $seen);
        self::assertStringNotContainsString('access.log', $seen);
        self::assertSame(0, $log->lostLines());
    }

    public function testAFileThatCannotBeOpenedIsReported(): void
    {
        $path = $this->path('none/access.log');
        $exception = self::thrown(AccessLogException::class, static fn() => AccessLog::toFile($path));
        self::assertSame($path, $exception->path);
        self::assertStringContainsString($path, $exception->getMessage());
        self::assertStringContainsString('No such file or directory', $exception->getMessage());
    }

    public function testAPipeWithoutAReaderIsNotWaitedFor(): void
    {
        posix_mkfifo($this->path('fifo'), 0o600);

        $this->expectException(AccessLogException::class);
        AccessLog::toFile($this->path('fifo'));
    }

    public function testAFullDiskHarmsNoRequestAndIsReportedOnce(): void
    {
        $log = AccessLog::toFile('/dev/full');
        $told = $this->errorLogOf(static function () use ($log): void {
            for ($i = 0; $i < 3; ++$i) {
                self::assertSame(200, $log->process(new ServerRequest('GET', '/'), new Handler())->getStatusCode());
            }
        });

        self::assertSame(3, $log->lostLines());
        self::assertCount(1, $told);
        self::assertStringContainsString('No space left on device', $told[0]);
    }

    /** @return iterable<string, array{int, int}> */
    public static function lines(): iterable
    {
        yield 'lines that are written as a whole or not at all' => [500, 0];
        yield 'lines that may be written in part' => [5000, 1];
    }

    #[DataProvider('lines')]
    public function testAReaderThatIsTooSlowLosesLinesAndTheNextOneIsWhole(int $length, int $torn): void
    {
        $reader = $this->pipeReader('fifo');
        $log = AccessLog::toFile($this->path('fifo'));
        $sent = 0;
        $told = $this->errorLogOf(static function () use ($log, $length, &$sent): void {
            for (; $log->lostLines() < 3; ++$sent) {
                $log->process(
                    new ServerRequest('GET', "/{$sent}", ['Referer' => str_repeat('r', $length)]),
                    new Handler(),
                );
            }
        });
        self::assertCount(1, $told);
        self::assertStringContainsString('too slow', $told[0]);

        $read = stream_get_contents($reader);
        $log->process(new ServerRequest('GET', '/later'), new Handler());
        $lines = explode("\n", rtrim($read . stream_get_contents($reader)));
        $whole = preg_grep(
            '@^- - - ' . self::DATE . " \"GET /\\w+ HTTP/1\\.1\" 200 6 \"(?:r{{$length}}|-)\" \"-\"$@D",
            $lines,
        );
        \assert($whole !== false);

        self::assertStringContainsString('"GET /later HTTP/1.1"', $lines[\count($lines) - 1]);
        self::assertCount($sent - 3 + 1, $whole);
        self::assertCount(
            \count($whole) + $torn,
            $lines,
            'What was written of the first that did not fit is a line of its own',
        );
        fclose($reader);
    }

    public function testAStreamIsNotWaitedForEither(): void
    {
        [$here, $there] = self::pair();
        AccessLog::toStream($there)->process(new ServerRequest('GET', '/'), new Handler());

        self::assertFalse(stream_get_meta_data($there)['blocked']);
        self::assertStringContainsString('"GET / HTTP/1.1"', (string) fgets($here));
        fclose($here);
    }

    public function testAStreamThatWasClosedLosesLines(): void
    {
        [$here, $there] = self::pair();
        $log = AccessLog::toStream($there);
        fclose($there);
        $told = $this->errorLogOf(static fn() => $log->process(new ServerRequest('GET', '/'), new Handler()));

        self::assertSame(1, $log->lostLines());
        self::assertStringContainsString('closed', $told[0] ?? '');
        fclose($here);
    }

    public function testAReaderThatHasGoneLosesLines(): void
    {
        [$here, $there] = self::pair();
        $log = AccessLog::toStream($there);
        fclose($here);
        $told = $this->errorLogOf(static fn() => $log->process(new ServerRequest('GET', '/'), new Handler()));

        self::assertSame(1, $log->lostLines());
        self::assertStringContainsString('Broken pipe', $told[0] ?? '');
    }

    public function testALoggerThatThrowsHarmsNoRequestAndIsReportedOnce(): void
    {
        $throwing = new class extends AbstractLogger {
            /**
             * @param mixed              $level
             * @param string|\Stringable $message
             * @param array<mixed>       $context
             */
            public function log($level, $message, array $context = []): void
            {
                throw new \UnexpectedValueException('The disk is full');
            }
        };
        $log = AccessLog::toLogger($throwing);
        $told = $this->errorLogOf(static function () use ($log): void {
            $log->process(new ServerRequest('GET', '/'), new Handler());
            $log->process(new ServerRequest('GET', '/'), new Handler());
        });

        self::assertSame(2, $log->lostLines());
        self::assertCount(1, $told);
        self::assertStringContainsString('The disk is full', $told[0]);
    }

    /** @return iterable<string, array{string, string}> */
    public static function hostile(): iterable
    {
        yield 'a quote' => ['a" 200 5 "b', 'a\x22 200 5 \x22b'];
        yield 'a line break' => ["a\n1.2.3.4 - - [", 'a\x0a1.2.3.4 - - ['];
        yield 'a carriage return' => ["a\rb", 'a\x0db'];
        yield 'a backslash' => ['a\\', 'a\x5c'];
        yield 'an escape that is none' => ['\x22', '\x5cx22'];
        yield 'a terminal sequence' => ["\e[2J\x9b1m\x7f", '\x1b[2J\x9b1m\x7f'];
        yield 'a NUL' => ["a\0b", 'a\x00b'];
        yield 'beyond ASCII' => ['é', '\xc3\xa9'];
    }

    #[DataProvider('hostile')]
    public function testNoFieldCanEndItsLineOrItsQuotes(string $sent, string $logged): void
    {
        $line = (new AccessLogEntry($sent, $sent, $sent, 400, null, 0.0, $sent, $sent, $sent, $sent))->combined();
        $client = str_replace(' ', '\x20', $logged);

        self::assertStringStartsWith("{$client} - - [", $line);
        self::assertStringEndsWith("] \"{$logged} {$logged} HTTP/{$logged}\" 400 - \"{$logged}\" \"{$logged}\"", $line);
    }

    public function testTheTimeIsTheOneAtWhichTheRequestCame(): void
    {
        $line = new AccessLogEntry('GET', '/', '1.1', 200, 0, 3600.0);

        $time = \DateTimeImmutable::createFromFormat('- - - [d/M/Y:H:i:s O] +', $line->combined());

        self::assertNotFalse($time);
        self::assertEqualsWithDelta(time() - 3600, $time->getTimestamp(), 30);
    }

    private function lineOf(ServerRequest $request, Response $response): string
    {
        $path = $this->path('access.log');
        AccessLog::toFile($path)->process($request, new Handler($response));

        return Text::lines($path)[\count(Text::lines($path)) - 1];
    }

    /** @return array{resource, resource} */
    private static function pair(): array
    {
        $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \assert(isset($pair[0], $pair[1]));

        return [$pair[0], $pair[1]];
    }

    /** @return resource */
    private function pipeReader(string $name): mixed
    {
        posix_mkfifo($this->path($name), 0o600);
        $reader = fopen($this->path($name), 'rn');
        \assert($reader !== false);

        return $reader;
    }

    /** @return list<string> targets of the descriptors that a child inherits */
    private static function descriptors(): array
    {
        return array_map(static fn(int $fd): string => "/proc/self/fd/{$fd}", range(0, 60));
    }
}
