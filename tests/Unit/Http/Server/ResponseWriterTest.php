<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use Nyholm\Psr7\Response as ForeignResponse;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Server\ResponseWriter;
use Spindle\Http\Response;

final class ResponseWriterTest extends TestCase
{
    /** @return iterable<string, array{Response, list<string>, string}> */
    public static function answers(): iterable
    {
        $text = Response::text('hello');
        yield 'as a helper makes it' => [
            $text,
            ['HTTP/1.1 200 OK', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 5'],
            'hello',
        ];
        yield 'another body' => [
            Response::text('other one'),
            ['HTTP/1.1 200 OK', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 9'],
            'other one',
        ];
        yield 'a status' => [
            $text->withStatus(404),
            ['HTTP/1.1 404 Not Found', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 5'],
            'hello',
        ];
        yield 'a status at once' => [
            Response::text('hello', 404),
            ['HTTP/1.1 404 Not Found', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 5'],
            'hello',
        ];
        yield 'a reason' => [
            $text->withStatus(200, 'Fine'),
            ['HTTP/1.1 200 Fine', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 5'],
            'hello',
        ];
        yield 'a header' => [
            $text->withHeader('X-A', ['1', '2']),
            ['HTTP/1.1 200 OK', 'Content-Type: text/plain; charset=utf-8', 'X-A: 1', 'X-A: 2', 'Content-Length: 5'],
            'hello',
        ];
        yield 'a header at once' => [
            Response::text('hello', headers: ['X-A' => '1']),
            ['HTTP/1.1 200 OK', 'X-A: 1', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 5'],
            'hello',
        ];
        yield 'a header added' => [
            $text->withAddedHeader('Content-Type', 'b'),
            ['HTTP/1.1 200 OK', 'Content-Type: text/plain; charset=utf-8', 'Content-Type: b', 'Content-Length: 5'],
            'hello',
        ];
        yield 'no header' => [$text->withoutHeader('Content-Type'), ['HTTP/1.1 200 OK', 'Content-Length: 5'], 'hello'];
        yield 'another type' => [
            Response::binary('hello', 'image/png'),
            ['HTTP/1.1 200 OK', 'Content-Type: image/png', 'Content-Length: 5'],
            'hello',
        ];
        yield 'a wrong length' => [
            $text->withHeader('Content-Length', '7'),
            ['HTTP/1.1 200 OK', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 5'],
            'hello',
        ];
        yield 'fields of the connection' => [
            $text
                ->withHeader('Transfer-Encoding', 'chunked')
                ->withHeader('Keep-Alive', '5')
                ->withHeader('Upgrade', 'h2c'),
            ['HTTP/1.1 200 OK', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 5'],
            'hello',
        ];
        yield 'nothing to be said' => [
            $text->withStatus(204),
            ['HTTP/1.1 204 No Content', 'Content-Type: text/plain; charset=utf-8'],
            '',
        ];
        yield 'content that is reset' => [
            $text->withStatus(205)->withHeader('Content-Length', '9'),
            ['HTTP/1.1 205 Reset Content', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 0'],
            '',
        ];
        yield 'nothing new' => [
            $text->withStatus(304)->withHeader('Content-Length', '9'),
            ['HTTP/1.1 304 Not Modified', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 9'],
            '',
        ];
    }

    /** @param list<string> $lines */
    #[DataProvider('answers')]
    public function testAResponseIsWrittenLikeThatOfAnotherLibrary(Response $response, array $lines, string $body): void
    {
        $foreign = new ForeignResponse(
            $response->getStatusCode(),
            $response->getHeaders(),
            (string) $response->getBody(),
            reason: $response->getReasonPhrase(),
        );

        foreach ([$response, $response, $foreign] as $answer) {
            [$written, $keep] = self::write($answer);
            self::assertSame(
                [self::sorted($lines), $body, true],
                [self::sorted($written->lines), $written->body, $keep],
            );
            self::assertSame($lines[0], $written->lines[0]);
            self::assertMatchesRegularExpression(
                '/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/',
                $written->date,
            );
        }
    }

    public function testACopyDoesNotChangeOtherResponses(): void
    {
        [$before] = self::write(Response::text('hello'));
        Response::text('hello', 500, ['X' => 'y'])->withHeader('X', 'z')->withBody(Stream::create('other'));

        self::assertEquals($before->lines, self::write(Response::text('hello'))[0]->lines);
    }

    public function testResponsesOfAnotherLibraryAreDistinguished(): void
    {
        $writer = new ResponseWriter();
        $lines = static function (ForeignResponse $response) use ($writer): array {
            $keep = true;
            $head = explode(
                "\r\n\r\n",
                $writer->complete($response, 'hello', new Head(), $keep, (int) hrtime(true)),
            )[0];

            return array_values(array_filter(
                explode("\r\n", $head),
                static fn(string $line): bool => !str_starts_with($line, 'Date: '),
            ));
        };
        foreach ([1, 2] as $ignored) {
            self::assertSame(
                ['HTTP/1.1 200 OK', 'A: 1', 'Content-Length: 5'],
                $lines(new ForeignResponse(200, ['A' => '1'])),
            );
            self::assertSame(
                ['HTTP/1.1 404 Not Found', 'A: 1', 'Content-Length: 5'],
                $lines(new ForeignResponse(404, ['A' => '1'])),
            );
            self::assertSame(
                ['HTTP/1.1 404 Lost', 'A: 1', 'Content-Length: 5'],
                $lines(new ForeignResponse(404, ['A' => '1'], reason: 'Lost')),
            );
            self::assertSame(
                ['HTTP/1.1 404 Lost', 'A: 2', 'Content-Length: 5'],
                $lines(new ForeignResponse(404, ['A' => '2'], reason: 'Lost')),
            );
            self::assertSame(
                ['HTTP/1.1 200 OK', 'A: 1', 'A: 2', 'Content-Length: 5'],
                $lines(new ForeignResponse(200, ['A' => ['1', '2'], 'Content-Length' => '5'])),
            );
            self::assertSame(
                ['HTTP/1.1 200 OK', 'A: 1', 'A: 2', 'Content-Length: 5'],
                $lines(new ForeignResponse(200, ['A' => ['1', '2'], 'Content-Length' => '6'])),
            );
        }
    }

    public function testAResponseOfAnotherLibraryMayHaveThousandsOfFieldLines(): void
    {
        $response = new ForeignResponse(200, ['A' => array_fill(0, 3000, 'b')]);

        self::assertSame(
            ['HTTP/1.1 200 OK', ...array_fill(0, 3000, 'A: b'), 'Content-Length: 0'],
            self::write($response)[0]->lines,
        );
    }

    public function testADateOfAHandlerIsKept(): void
    {
        [$written] = self::write(Response::text('hello', headers: ['Date' => 'Thu, 01 Jan 1970 00:00:00 GMT']));

        self::assertSame('Date: Thu, 01 Jan 1970 00:00:00 GMT', $written->date);
    }

    public function testTheDateIsFormattedAgainAfterASecond(): void
    {
        $writer = new ResponseWriter();
        $keep = true;
        [$then, $now] = [new \DateTimeImmutable('now'), (int) hrtime(true)];
        $first = $writer->complete(Response::text(''), '', new Head(), $keep, $now);
        self::assertSame($first, $writer->complete(Response::text(''), '', new Head(), $keep, $now + 999_999_999));
        time_sleep_until((float) $then->format('U') + 1.0);

        self::assertNotSame($first, $writer->complete(Response::text(''), '', new Head(), $keep, $now + 1_000_000_000));
    }

    public function testTheConnectionFieldDependsOnTheProtocolVersion(): void
    {
        $old = new Head();
        $old->version = '1.0';

        self::assertContains('Connection: keep-alive', self::write(Response::text(''), $old)[0]->lines);
        self::assertContains('Connection: close', self::write(Response::text(''), keep: false)[0]->lines);
        [$written, $keep] = self::write(Response::text('', headers: ['Connection' => 'Close']));
        self::assertContains('Connection: close', $written->lines);
        self::assertFalse($keep);
    }

    /** @param list<string> $values */
    #[TestWith([['close'], false])]
    #[TestWith([['keep-alive', 'close'], false])]
    #[TestWith([['X-Field, Close'], false])]
    #[TestWith([["close\t,x", 'y'], false])]
    #[TestWith([['keep-alive'], true])]
    #[TestWith([['x-close', 'closed, close-x'], true])]
    public function testCloseIsFoundAmongOtherConnectionOptions(array $values, bool $kept): void
    {
        [$written, $keep] = self::write(Response::text('')->withHeader('Connection', $values));

        self::assertSame(
            [$kept, $kept ? [] : ['Connection: close']],
            [
                $keep,
                array_values(array_filter(
                    $written->lines,
                    static fn(string $line): bool => str_starts_with($line, 'Connection'),
                )),
            ],
        );
    }

    public function testHeadGetsTheLengthAndNoBody(): void
    {
        $head = new Head();
        $head->method = 'HEAD';
        [$written] = self::write(Response::text('hello'), $head);

        self::assertContains('Content-Length: 5', $written->lines);
        self::assertSame('', $written->body);
    }

    public function testAnInterimStatusIsRefused(): void
    {
        $this->expectException(\UnexpectedValueException::class);
        $this->expectExceptionMessage('The status of a response must be from 200 to 599, not 101');
        self::write(new ForeignResponse(101));
    }

    /**
     * @return array{object{lines: list<string>, date: string, body: string}, bool} the written response, and whether
     *         the connection is kept
     */
    private static function write(ResponseInterface $response, Head $request = new Head(), bool $keep = true): array
    {
        $body = $response instanceof Response ? $response->body() : null;
        $bytes = (new ResponseWriter())->complete(
            $response,
            \is_string($body) ? $body : (string) $response->getBody(),
            $request,
            $keep,
            (int) hrtime(true),
        );
        [$head, $body] = explode("\r\n\r\n", $bytes, 2);
        $lines = explode("\r\n", $head);
        $dates = array_filter($lines, static fn(string $line): bool => str_starts_with($line, 'Date:'));
        self::assertCount(1, $dates);

        return [
            (object) [
                'lines' => array_values(array_diff($lines, $dates)),
                'date' => implode('', $dates),
                'body' => $body,
            ],
            $keep,
        ];
    }

    /**
     * @param list<string> $lines
     *
     * @return list<string>
     */
    private static function sorted(array $lines): array
    {
        sort($lines);

        return $lines;
    }
}
