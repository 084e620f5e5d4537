<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http;

use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\HttpException;
use Spindle\Http\Response;
use Spindle\Tests\Streams;

final class ResponseTest extends TestCase
{
    /** @return iterable<string, array{Response, int, array<string, list<string>>, string}> */
    public static function helpers(): iterable
    {
        yield 'text' => [Response::text('ü', 201), 201, ['Content-Type' => ['text/plain; charset=utf-8']], 'ü'];
        yield 'html' => [Response::html('<p>'), 200, ['Content-Type' => ['text/html; charset=utf-8']], '<p>'];
        yield 'json' => [Response::json(['a' => '/ü']), 200, ['Content-Type' => ['application/json']], '{"a":"/ü"}'];
        yield 'binary' => [Response::binary("\0", 'image/png'), 200, ['Content-Type' => ['image/png']], "\0"];
        yield 'stream' => [Response::stream(['a', '', 'b'], 'text/csv'), 200, ['Content-Type' => ['text/csv']], 'ab'];
        yield 'redirect' => [Response::redirect('/a b?ü=%20#x', 308), 308, ['Location' => ['/a%20b?%C3%BC=%20#x']], ''];
        yield 'a type of its own' => [
            Response::text('{}', 200, ['content-type' => 'application/x']),
            200,
            ['content-type' => ['application/x']],
            '{}',
        ];
        yield 'further headers' => [
            Response::text('', 200, ['X-A' => ['1', '2']]),
            200,
            ['X-A' => ['1', '2'], 'Content-Type' => ['text/plain; charset=utf-8']],
            '',
        ];
    }

    /** @param array<string, list<string>> $headers */
    #[DataProvider('helpers')]
    public function testAHelperSaysWhatItSends(Response $response, int $status, array $headers, string $body): void
    {
        self::assertSame(
            [$status, $headers, $body],
            [$response->getStatusCode(), $response->getHeaders(), (string) $response->getBody()],
        );
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function unsendable(): iterable
    {
        $response = new Response();
        foreach (["a\r\nX: y", "a\nb", "a\rb", "a\0", "a\x7f"] as $value) {
            yield 'the value ' . json_encode($value) => [static fn() => new Response(200, ['X' => $value])];
            yield 'the value set ' . json_encode($value) => [static fn() => $response->withHeader('X', $value)];
            yield 'the value added ' . json_encode($value) => [
                static fn() => $response->withAddedHeader('X', ['fine', $value]),
            ];
            yield 'the reason ' . json_encode($value) => [static fn() => $response->withStatus(200, $value)];
        }
        foreach (['', 'a b', "a\r\nb", 'a:', 'ü'] as $name) {
            yield 'the name ' . json_encode($name) => [static fn() => new Response(200, [$name => 'x'])];
            yield 'the name set ' . json_encode($name) => [static fn() => $response->withHeader($name, 'x')];
        }
        foreach ([0, 99, 100, 199, 600] as $status) {
            yield "the status {$status}" => [static fn() => new Response($status)];
            yield "the status set {$status}" => [static fn() => $response->withStatus($status)];
        }
        foreach ([200, 299, 400] as $status) {
            yield "the status {$status} of a redirect" => [static fn() => Response::redirect('/', $status)];
        }
        foreach (['', "9\r\n", '1.1 x', 'HTTP/1.1', "1.1\n"] as $version) {
            yield 'the version ' . json_encode($version) => [static fn() => $response->withProtocolVersion($version)];
        }
        yield 'no value' => [static fn() => $response->withHeader('X', [])];
    }

    /** @param \Closure(): mixed $set */
    #[DataProvider('unsendable')]
    public function testWhatCanNotBeSentAsItIsThrowsWhereItIsSet(\Closure $set): void
    {
        $this->expectException(\InvalidArgumentException::class);

        $set();
    }

    /** @param \Closure(): mixed $set */
    #[DataProvider('listsOfHeaders')]
    public function testAListOfHeadersIsRefusedWithTheRightForm(\Closure $set): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage("Write ['Name' => 'value'], not ['Name: value']");

        $set();
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function listsOfHeaders(): iterable
    {
        $headers = self::untyped(['X-One' => 'a', 'Content-Type: text/plain']);
        yield 'the constructor' => [static fn() => new Response(200, $headers)];
        yield 'json()' => [static fn() => Response::json([], 200, $headers)];
        yield 'stream()' => [static fn() => Response::stream([], headers: $headers)];
        yield 'a refusal' => [static fn() => new HttpException(403, headers: $headers)];
        yield 'a request' => [static fn() => (new HttpClient())->get('http://127.0.0.1:1/', $headers)];
        yield 'a list that begins with 1' => [static fn() => new Response(200, self::untyped([1 => 'X: y']))];
        yield 'a negative index' => [static fn() => new Response(200, self::untyped([-3 => 'X: y']))];
    }

    public function testAReceivedHeaderCanHaveANumberAsItsName(): void
    {
        $response = new Response(200, self::untyped([['x'], 17 => ['y']]));

        self::assertSame(['x', 'y'], [$response->getHeaderLine('0'), $response->getHeaderLine('17')]);
    }

    #[TestWith(['text'])]
    #[TestWith([''])]
    #[TestWith([500_000])]
    public function testAResponseWithAStringIsSerializedAlsoAfterItsBodyWasUsed(string|int $body): void
    {
        $text = \is_int($body) ? str_repeat('x', $body) : $body;
        $response = new Response(201, ['X-A' => ['1', '2']], $text, 'Made');
        $unused = unserialize(serialize($response));
        $begin = $response->getBody()->read(2);
        $used = unserialize(serialize($response));

        foreach ([$unused, $used] as $restored) {
            self::assertInstanceOf(Response::class, $restored);
            self::assertSame(
                [201, 'Made', '1.1', ['X-A' => ['1', '2']]],
                [
                    $restored->getStatusCode(),
                    $restored->getReasonPhrase(),
                    $restored->getProtocolVersion(),
                    $restored->getHeaders(),
                ],
            );
            self::assertSame($text, (string) $restored->getBody());
        }
        self::assertSame($text, $begin . $response->getBody()->getContents());
    }

    public function testAResponseWithAnOpenFileIsNotSerialized(): void
    {
        $response = new Response(200, [], Stream::create(Streams::open(__FILE__, 'r')));
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('can not be serialized, because its body is a stream of this process. Create');

        serialize($response);
    }

    /**
     * Returns headers that the declared type does not allow.
     *
     * @param array<mixed> $headers
     *
     * @return array<string, string>
     */
    private static function untyped(array $headers): array
    {
        /** @var array<string, string> */
        return $headers;
    }

    public function testNamesOfHeadersHaveNoCaseAndKeepTheirs(): void
    {
        $response = (new Response(200, ['X-One' => 'a', 'x-one' => 'b']))->withAddedHeader('X-ONE', 'c');

        self::assertSame(['X-One' => ['a', 'b', 'c']], $response->getHeaders());
        self::assertSame('a, b, c', $response->getHeaderLine('x-oNe'));
        self::assertSame(['X-ONE' => ['d']], $response->withHeader('X-ONE', 'd')->getHeaders());
        self::assertFalse($response->withoutHeader('x-one')->hasHeader('X-One'));
        self::assertTrue($response->hasHeader('x-one'));
    }

    public function testAHeaderMayHaveANumberForAName(): void
    {
        $response = (new Response())->withHeader('1', 'a');

        self::assertSame(['a'], $response->getHeader('1'));
    }

    public function testAResponseIsNeverChanged(): void
    {
        $response = Response::text('a');
        $other = $response
            ->withStatus(404, 'Gone fishing')
            ->withHeader('X', 'y')
            ->withBody(Stream::create('b'))
            ->withProtocolVersion('1.0');

        self::assertSame(
            [200, 'OK', false, 'a', '1.1'],
            [
                $response->getStatusCode(),
                $response->getReasonPhrase(),
                $response->hasHeader('X'),
                (string) $response->getBody(),
                $response->getProtocolVersion(),
            ],
        );
        self::assertSame(
            [404, 'Gone fishing', true, 'b', '1.0'],
            [
                $other->getStatusCode(),
                $other->getReasonPhrase(),
                $other->hasHeader('X'),
                (string) $other->getBody(),
                $other->getProtocolVersion(),
            ],
        );
    }

    public function testABodyThatWasWrittenToIsSentAsItIsThen(): void
    {
        $response = Response::text('abc');
        $response->getBody()->seek(3);
        $response->getBody()->write('def');

        self::assertSame('abcdef', (string) $response->getBody());
    }

    public function testAStreamIsLetGoWhenItIsClosed(): void
    {
        $ended = false;
        $body = Response::stream((static function () use (&$ended): \Generator {
            try {
                yield 'a';
                yield 'b';
            } finally {
                $ended = true;
            }
        })())->getBody();

        $read = $body->read(10);
        $body->close();

        self::assertSame(['a', true, '', true], [$read, $ended, $body->read(10), $body->eof()]);
    }

    public function testAPieceOfAStreamMayBeReadInParts(): void
    {
        $body = Response::stream(['hello', 'you'])->getBody();

        self::assertSame(['he', 'llo', 'you', ''], [$body->read(2), $body->read(9), $body->read(3), $body->read(1)]);
        self::assertSame(
            [true, 8, null, false, false],
            [$body->eof(), $body->tell(), $body->getSize(), $body->isSeekable(), $body->isWritable()],
        );
    }
}
