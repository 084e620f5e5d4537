<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Nyholm\Psr7\Response as OtherResponse;
use Nyholm\Psr7\ServerRequest;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Middleware\Compression;
use Spindle\Http\Response;
use Spindle\Tests\Http\CallbackStream;
use Spindle\Tests\Streams;

#[RequiresPhpExtension('zlib')]
final class CompressionTest extends TestCase
{
    public function testAStringIsCompressedAtOnceWithItsLength(): void
    {
        $text = str_repeat('Hello, world. ', 100);
        $response = self::answer(Response::text($text, headers: ['Content-Length' => (string) \strlen($text)]));
        $body = (string) $response->getBody();

        self::assertSame($text, gzdecode($body));
        self::assertSame((string) \strlen($body), $response->getHeaderLine('Content-Length'));
        self::assertSame(\strlen($body), $response->getBody()->getSize());
        self::assertLessThan(200, \strlen($body));
        self::assertSame(['gzip'], $response->getHeader('Content-Encoding'));
        self::assertSame('Accept-Encoding', $response->getHeaderLine('Vary'));
    }

    public function testNamesBehindTheHundredthOfAFieldAreIgnored(): void
    {
        $others = static fn(int $count): string => implode(',', range(1, $count));
        $response = Response::text(str_repeat('x', 2000));

        self::assertSame(
            ['gzip'],
            self::answer($response, accept: "{$others(99)},gzip")->getHeader('Content-Encoding'),
        );
        self::assertSame([], self::answer($response, accept: "{$others(100)},gzip")->getHeader('Content-Encoding'));
    }

    public function testResponsesOfOthersAreCompressedToo(): void
    {
        $text = random_bytes(2000) . str_repeat('x', 2000);

        self::assertSame(
            $text,
            gzdecode((string) self::answer(new OtherResponse(200, ['content-type' => 'text/html'], $text))->getBody()),
        );
    }

    public function testAResponseCanBeSentAgain(): void
    {
        foreach ([2000, 200_000] as $size) {
            $response = Response::text(str_repeat('x', $size));
            self::answer($response)->getBody()->getContents();

            self::assertSame($size, \strlen((string) gzdecode(self::answer($response)->getBody()->getContents())));
        }
    }

    public function testALargeBodyIsCompressedWhileItIsSent(): void
    {
        $text = self::text(300_000);
        $response = self::answer(Response::text(
            $text,
            headers: ['Content-Length' => '300000', 'Accept-Ranges' => 'bytes'],
        ));

        self::assertFalse($response->hasHeader('Content-Length'));
        self::assertFalse($response->hasHeader('Accept-Ranges'));
        self::assertNull($response->getBody()->getSize());
        self::assertSame($text, gzdecode(self::readBy($response->getBody(), 1000)));
    }

    public function testWhatAStreamGivesCanBeReadAtOnce(): void
    {
        $inflate = inflate_init(\ZLIB_ENCODING_GZIP);
        \assert($inflate !== false);
        $body = self::answer(Response::stream(['a', 'bc', '', str_repeat('d', 50_000), 'e'], 'text/plain'))->getBody();
        $pieces = [];
        while (!$body->eof()) {
            $piece = inflate_add($inflate, $body->read(65_536));
            $pieces[] = \strlen((string) $piece);
        }

        self::assertSame([1, 2, 16_384, 16_384, 16_384, 848, 1, 0], $pieces);
    }

    public function testABodyCanBeReadInAnyPieces(): void
    {
        $chunks = [self::text(1000), self::text(70_000), 'x'];
        foreach ([1, 7, 100_000] as $length) {
            $body = self::answer(Response::stream($chunks, 'text/plain'))->getBody();
            $bytes = self::readBy($body, $length);

            self::assertSame(implode('', $chunks), gzdecode($bytes));
            self::assertSame(\strlen($bytes), $body->tell());
        }
    }

    public function testAnEmptyStreamIsEmpty(): void
    {
        self::assertSame('', gzdecode((string) self::answer(Response::stream([], 'text/plain'))->getBody()));
    }

    public function testAStreamThatHasNothingYetIsAskedAgain(): void
    {
        $body = self::answer(new Response(
            200,
            ['Content-Type' => 'text/plain'],
            new Pieces(['a', '', '', 'b']),
        ))->getBody();

        self::assertSame('ab', gzdecode(self::readBy($body, 100)));
    }

    /** The middleware can't wait until a non-blocking pipe has bytes, but the server can. */
    #[TestWith([null])]
    #[TestWith([2000])]
    public function testABodyThatMayHaveNothingYetIsReadWhileItIsSent(?int $size): void
    {
        $source = new Pieces([str_repeat('a', 1000), '', str_repeat('b', 1000)]);
        $source->size = $size; // the caller can tell it to the streams of Guzzle
        $source->meanwhile = static fn(): never => throw new \LogicException('It is read too early');
        $response = self::answer(
            new Response(200, ['Content-Type' => 'text/plain', 'Content-Length' => '2000'], $source),
        );
        $source->meanwhile = null;

        self::assertFalse($response->hasHeader('Content-Length'));
        self::assertSame(
            str_repeat('a', 1000) . str_repeat('b', 1000),
            gzdecode(self::readBy($response->getBody(), 100)),
        );
    }

    /** PHP reports the size 0 for each pipe. */
    public function testAPipeIsCompressed(): void
    {
        [$reader, $writer] = Streams::pair();
        fwrite($writer, str_repeat('x', 3000));
        fclose($writer);
        $response = self::answer(new Response(200, ['Content-Type' => 'text/plain'], Stream::create($reader)));

        self::assertSame(['gzip'], $response->getHeader('Content-Encoding'));
        self::assertSame(str_repeat('x', 3000), gzdecode(self::readBy($response->getBody(), 100)));
    }

    public function testASeekableBodyIsCompressedFromItsBeginning(): void
    {
        foreach ([3000, 200_000] as $size) {
            $text = self::text($size);
            $written = new OtherResponse(200, ['Content-Type' => 'text/html']);
            $written->getBody()->write($text);
            $looked = Response::text($text);
            self::assertSame($text, (string) $looked->getBody());
            $halfway = Stream::create($text);
            $halfway->seek(1000);

            foreach ([$written, $looked, new Response(200, ['Content-Type' => 'text/plain'], $halfway)] as $response) {
                self::assertSame($text, gzdecode((string) self::answer($response)->getBody()));
            }
        }
    }

    public function testASeekableBodyThatIsLeftAsItIsCanBeAnsweredWithAgain(): void
    {
        foreach ([3000, 200_000] as $size) {
            $text = self::text($size);
            $response = new Response(200, ['Content-Type' => 'text/plain'], Stream::create($text));
            foreach ([1, 2] as $time) {
                $body = self::answer($response)->getBody();
                self::assertSame($text, gzdecode($body->getContents()), "time {$time}");
                $body->close();
            }
            self::answer($response)->getBody()->close(); // before the end

            self::assertSame($text, (string) $response->getBody());
        }
    }

    public function testOneSeekableBodyIsCompressedForSeveralAtOnce(): void
    {
        $text = self::text(200_000);
        $response = new Response(200, ['Content-Type' => 'text/plain'], Stream::create($text));
        $bodies = [self::answer($response)->getBody(), self::answer($response)->getBody()];
        $bytes = ['', ''];
        for ($round = 0; $round < 100 && (!$bodies[0]->eof() || !$bodies[1]->eof()); ++$round) {
            foreach ($bodies as $i => $body) {
                $bytes[$i] .= $body->read(10_000);
            }
            $response->getBody()->seek(7); // as another owner of the body might
        }

        self::assertSame([$text, $text], array_map(gzdecode(...), $bytes));
    }

    public function testABodyThatWasReadAndCanNotBeReadAgainIsLeftForTheServerToRefuse(): void
    {
        $response = Response::stream([str_repeat('x', 2000)], 'text/plain');
        self::answer($response)->getBody()->getContents();

        self::assertSame($response, self::answer($response));
    }

    public function testABodyThatIsShorterThanItsSizeIsNotComplete(): void
    {
        $source = self::createStub(StreamInterface::class);
        $source->method('isSeekable')->willReturn(true);
        $source->method('isReadable')->willReturn(true);
        $source->method('getSize')->willReturn(100_000);
        $source->method('eof')->willReturn(true);
        $source->method('read')->willReturn('');
        $body = self::answer(new Response(200, ['Content-Type' => 'text/plain'], $source))->getBody();

        $this->expectException(\LengthException::class);
        $this->expectExceptionMessage('The body has 0 bytes instead of the announced 100000');
        $body->getContents();
    }

    public function testABodyThatIsLongerThanItsSizeIsNotComplete(): void
    {
        $source = self::createStub(StreamInterface::class);
        $source->method('isSeekable')->willReturn(true);
        $source->method('isReadable')->willReturn(true);
        $source->method('getSize')->willReturn(100_000);
        $source->method('eof')->willReturn(false);
        $source->method('read')->willReturnCallback(static fn(int $length): string => str_repeat('x', $length));
        $body = self::answer(new Response(200, ['Content-Type' => 'text/plain'], $source))->getBody();

        $this->expectException(\LengthException::class);
        $this->expectExceptionMessage('The body is longer than 100000 bytes');
        $body->getContents();
    }

    /** @param positive-int $size */
    #[TestWith([1500])]
    #[TestWith([150_000])]
    public function testABodyThatIsShorterThanAnnouncedIsNotComplete(int $size): void
    {
        $headers = ['Content-Length' => (string) ($size + 500)];
        $response = Response::stream(str_split(self::text($size), 1000), 'text/plain', 200, $headers);

        $this->expectException(\LengthException::class);
        $this->expectExceptionMessage("The body has {$size} bytes instead of the announced " . ($size + 500) . '');
        self::answer($response)->getBody()->getContents();
    }

    /** @param positive-int $size */
    #[TestWith([1500])]
    #[TestWith([150_000])]
    public function testABodyThatIsLongerThanWasAnnouncedEndsThere(int $size): void
    {
        $text = self::text($size);
        $headers = ['Content-Length' => (string) ($size - 300)];
        $response = Response::stream(str_split($text, 1000), 'text/plain', 200, $headers);

        self::assertSame(substr($text, 0, $size - 300), gzdecode(self::answer($response)->getBody()->getContents()));
    }

    public function testAWrongLengthOfABodyOfKnownSizeIsIgnored(): void
    {
        foreach ([1500, 150_000] as $size) {
            $text = self::text($size);
            foreach (['1200', '200000'] as $length) {
                $headers = ['Content-Type' => 'text/plain', 'Content-Length' => $length];
                foreach ([$text, Stream::create($text)] as $body) {
                    $compressed = self::answer(new Response(200, $headers, $body))->getBody()->getContents();
                    self::assertSame($text, gzdecode($compressed));
                }
            }
        }
    }

    public function testABodyThatBecomesMuchSmallerIsCompressedInManyReads(): void
    {
        $source = new Pieces(array_fill(0, 400, str_repeat("\0", 16_384)));
        $reads = 0;
        $source->meanwhile = static function () use (&$reads): void {
            ++$reads;
        };
        $source->size = 400 * 16_384;
        $body = self::answer(new Response(200, ['Content-Type' => 'text/plain'], $source))->getBody();
        $bytes = '';
        while (!$body->eof()) {
            $before = $reads;
            $bytes .= $piece = $body->read(65_536);
            self::assertNotSame('', $piece, 'an empty piece would be a busy wait');
            self::assertLessThanOrEqual(16, $reads - $before);
        }

        self::assertSame(str_repeat("\0", 400 * 16_384), gzdecode($bytes));
        self::assertSame(
            str_repeat("\0", 4_000_000),
            gzdecode(self::answer(Response::text(str_repeat("\0", 4_000_000)))->getBody()->getContents()),
        );
    }

    #[TestWith([null])]
    #[TestWith(['1400'])]
    #[TestWith(['70000'])]
    public function testABodyThatCanNotBeReadInPiecesIsCompressed(?string $length): void
    {
        $text = str_repeat('Hello, world. ', 5_000);
        $callback = new CallbackStream(static fn(): string => $text);
        $headers = ['Content-Type' => 'text/plain'] + ($length === null ? [] : ['Content-Length' => $length]);
        $response = self::answer(new OtherResponse(200, $headers, $callback));

        self::assertSame(['gzip'], $response->getHeader('Content-Encoding'));
        self::assertSame(
            substr($text, 0, (int) ($length ?? \strlen($text))),
            gzdecode($response->getBody()->getContents()),
        );
        self::assertTrue($response->getBody()->eof());
    }

    public function testClosingTheBodyClosesItsSource(): void
    {
        foreach ([0, 1] as $reads) {
            $source = new Pieces(['a', 'b']);
            $body = self::answer(new Response(200, ['Content-Type' => 'text/plain'], $source))->getBody();
            $reads === 0 || $body->read(100) !== '';
            $body->close();

            self::assertTrue($source->closed);
            self::assertTrue($body->eof());
            self::assertSame('', $body->read(100));
        }
    }

    public function testABodyThatIsClosedWhileItIsReadStaysClosed(): void
    {
        $source = new Pieces(['a', 'b']);
        $body = self::answer(new Response(200, ['Content-Type' => 'text/plain'], $source))->getBody();
        $source->meanwhile = $body->close(...);

        self::assertSame('', $body->read(100));
        self::assertTrue($body->eof());
    }

    public function testWhatTheSourceThrowsComesThrough(): void
    {
        $source = new Pieces(['a']);
        $source->meanwhile = static fn() => throw new \RuntimeException('The disk is gone');
        $body = self::answer(new Response(200, ['Content-Type' => 'text/plain'], $source))->getBody();

        $this->expectExceptionObject(new \RuntimeException('The disk is gone'));
        $body->read(100);
    }

    public function testACompressedStreamIsReadOnlyAndOnce(): void
    {
        $body = self::answer(Response::stream(['a'], 'text/plain'))->getBody();

        self::assertSame([true, false, false], [$body->isReadable(), $body->isWritable(), $body->isSeekable()]);
        $this->expectException(\RuntimeException::class);
        $body->rewind();
    }

    /** @return iterable<string, array{string, bool}> */
    public static function types(): iterable
    {
        foreach ([
            'text/plain',
            'text/html; charset=utf-8',
            'TEXT/CSS',
            'text/csv;header=present',
            'application/json',
            'application/problem+json',
            'application/vnd.a.b+json; v=1',
            'application/javascript',
            'application/xml',
            'application/rss+xml',
            'image/svg+xml',
            'application/wasm',
            'application/x-ndjson',
            'font/ttf',
            'image/x-icon',
        ] as $type) {
            yield $type => [$type, true];
        }
        foreach ([
            '',
            'text/',
            'image/png',
            'image/jpeg',
            'video/mp4',
            'application/zip',
            'application/octet-stream',
            'font/woff2',
            'application/jsonp',
            'xtext/plain',
            'text/event-stream',
            'Text/Event-Stream; charset=utf-8',
            'x',
        ] as $type) {
            yield "not '{$type}'" => [$type, false];
        }
    }

    #[DataProvider('types')]
    public function testWhatGetsSmallerIsCompressed(string $type, bool $compresses): void
    {
        $response = self::answer(new Response(
            200,
            $type === '' ? [] : ['Content-Type' => $type],
            str_repeat('x', 2000),
        ));

        self::assertSame($compresses, $response->hasHeader('Content-Encoding'));
        self::assertSame($compresses, $response->hasHeader('Vary'));
    }

    /** @return iterable<string, array{string, bool}> */
    public static function acceptFields(): iterable
    {
        yield 'nothing' => ['', false];
        yield 'gzip' => ['gzip', true];
        yield 'a browser' => ['gzip, deflate, br, zstd', true];
        yield 'in capitals' => ['GZIP', true];
        yield 'with a weight' => ['br;q=1.0, gzip;q=0.001', true];
        yield 'refused' => ['gzip;q=0', false];
        yield 'refused, with digits' => ['gzip; q=0.000, *', false];
        yield 'anything' => ['*', true];
        yield 'nothing at all' => ['*;q=0', false];
        yield 'another' => ['br', false];
        yield 'identity' => ['identity', false];
        yield 'rather not' => ['identity, gzip;q=0.5', false];
        yield 'as well' => ['identity;q=0.5, gzip;q=0.5', true];
        yield 'a name that is longer' => ['gzipped, x-gzip', false];
        yield 'a weight that is none' => ['gzip;q=yes', false];
        yield 'a weight below 0' => ['gzip;q=-1', false];
        yield 'a great deal' => [str_repeat('br,', 10_000) . 'gzip', true];
    }

    #[DataProvider('acceptFields')]
    public function testAcceptEncodingDecidesWhetherABodyIsCompressed(string $accept, bool $compresses): void
    {
        $response = self::answer(Response::text(str_repeat('x', 2000)), accept: $accept);

        self::assertSame($compresses, $response->hasHeader('Content-Encoding'));
        self::assertSame($compresses, (string) $response->getBody() !== str_repeat('x', 2000));
        self::assertSame('Accept-Encoding', $response->getHeaderLine('Vary'), 'A cache learns of it either way');
    }

    /** @return iterable<string, array{ResponseInterface}> */
    public static function left(): iterable
    {
        $text = static fn(int $status = 200, string $name = 'X-A', string $value = 'a'): Response
            => Response::text(str_repeat('x', 2000), $status, [$name => $value]);
        yield 'small' => [Response::text(str_repeat('x', 1023))];
        yield 'small by its length' => [Response::stream(['x'], 'text/plain', headers: ['Content-Length' => '1'])];
        yield 'encoded' => [$text(200, 'Content-Encoding', 'br')];
        yield 'encoded in name' => [$text(200, 'content-encoding', 'identity')];
        yield 'not to be transformed' => [$text(200, 'Cache-Control', 'public, no-transform')];
        yield 'not to be transformed, in capitals' => [$text(200, 'Cache-Control', 'No-Transform,public')];
        yield 'a part that is encoded' => [$text(206, 'Content-Encoding', 'br')];
        yield 'a part that is not to be transformed' => [$text(206, 'Cache-Control', 'no-transform')];
        yield 'a part of another type' => [new Response(206, ['Content-Type' => 'image/png'], 'x')];
        yield 'the range that there is' => [$text(416, 'Content-Range', 'bytes */5000')];
        yield 'no content' => [$text(204)];
        yield 'reset' => [$text(205)];
        yield 'with a digest' => [$text(200, 'Repr-Digest', 'sha-256=:a:')];
    }

    #[DataProvider('left')]
    public function testWhatIsNotToBeCompressedIsLeft(ResponseInterface $response): void
    {
        self::assertSame($response, self::answer($response));
    }

    /** RFC 9110, 15.3.7. */
    public function testAPartVariesLikeTheWholeAndIsNotCompressed(): void
    {
        foreach (['gzip', ''] as $accept) {
            foreach ([1, 2000] as $size) {
                $range = 'bytes 0-' . $size - 1 . '/5000';
                $response = Response::text(
                    str_repeat('x', $size),
                    206,
                    ['Content-Range' => $range, 'ETag' => '"a"'],
                );
                $answer = self::answer($response, accept: $accept);

                self::assertSame(['Vary' => ['Accept-Encoding']] + $response->getHeaders(), $answer->getHeaders());
                self::assertSame((string) $response->getBody(), (string) $answer->getBody());
            }
        }
    }

    public function testOtherDirectivesForCachesAreNotTakenForTheOne(): void
    {
        self::assertTrue(
            self::answer(Response::text(
                str_repeat('x', 2000),
                headers: ['Cache-Control' => 'x-no-transform, max-age=1'],
            ))->hasHeader('Content-Encoding'),
        );
    }

    public function testAnErrorIsCompressedToo(): void
    {
        self::assertTrue(self::answer(Response::text(str_repeat('x', 1024), 404))->hasHeader('Content-Encoding'));
    }

    public function testAStrongTagBecomesWeak(): void
    {
        $tag = static fn(string $tag, string $accept = 'gzip'): string => self::answer(
            Response::text(str_repeat('x', 2000), headers: ['ETag' => $tag]),
            accept: $accept,
        )->getHeaderLine('ETag');

        self::assertSame('W/"a"', $tag('"a"'));
        self::assertSame('W/"a"', $tag('W/"a"'));
        self::assertSame('"a"', $tag('"a"', ''));
    }

    public function testANotModifiedResponseHasTheETagOfTheCompressedOne(): void
    {
        $unmodified = static fn(string $accept, string $type = ''): ResponseInterface
            => self::answer(
                new Response(304, ['ETag' => '"a"'] + ($type === '' ? [] : ['Content-Type' => $type])),
                accept: $accept,
            );

        self::assertSame(
            ['W/"a"', 'Accept-Encoding'],
            [$unmodified('gzip')->getHeaderLine('ETag'), $unmodified('gzip')->getHeaderLine('Vary')],
        );
        self::assertSame(
            ['"a"', 'Accept-Encoding'],
            [$unmodified('')->getHeaderLine('ETag'), $unmodified('')->getHeaderLine('Vary')],
        );
        self::assertSame(
            ['W/"a"', 'Accept-Encoding'],
            [
                $unmodified('gzip', 'text/css')->getHeaderLine('ETag'),
                $unmodified('gzip', 'text/css')->getHeaderLine('Vary'),
            ],
        );
        self::assertSame(
            ['"a"', ''],
            [
                $unmodified('gzip', 'image/png')->getHeaderLine('ETag'),
                $unmodified('gzip', 'image/png')->getHeaderLine('Vary'),
            ],
        );
        self::assertFalse($unmodified('gzip')->hasHeader('Content-Encoding'));
    }

    public function testHeadSaysWhatGetWouldSay(): void
    {
        $headers = ['Content-Length' => '2000', 'ETag' => '"a"'];
        $head = self::answer(Response::text('', headers: $headers), 'HEAD');
        $get = self::answer(Response::text(str_repeat('x', 2000), headers: $headers));

        self::assertEquals($get->withoutHeader('Content-Length')->getHeaders(), $head->getHeaders());
        self::assertNull($head->getBody()->getSize(), 'So that no length is made of it');
        self::assertFalse(self::answer(Response::text(''), 'HEAD')->hasHeader('Content-Encoding'));
    }

    public function testHeadCompressesNothing(): void
    {
        $source = new Pieces(['a']);
        $source->meanwhile = static fn() => throw new \LogicException('Nobody was to read');

        self::assertSame(
            'gzip',
            self::answer(
                new Response(200, ['Content-Type' => 'text/plain'], $source),
                'HEAD',
            )->getHeaderLine('Content-Encoding'),
        );
    }

    public function testHeadLeavesASeekableBodyWhereItStands(): void
    {
        foreach ([2000, 200_000] as $size) {
            $source = Stream::create(str_repeat('x', $size));
            $source->seek(10);
            $head = self::answer(new Response(200, ['Content-Type' => 'text/plain'], $source), 'HEAD');
            $head->getBody()->close();

            self::assertSame(
                ['gzip', false, 10],
                [$head->getHeaderLine('Content-Encoding'), $head->hasHeader('Content-Length'), $source->tell()],
            );
        }
    }

    public function testWhatTheHandlerVariesByIsKept(): void
    {
        self::assertSame(
            'Origin, Accept-Encoding',
            self::answer(Response::text(str_repeat('x', 2000), headers: ['Vary' => 'Origin']))->getHeaderLine('Vary'),
        );
    }

    private static function answer(
        ResponseInterface $response,
        string $method = 'GET',
        string $accept = 'gzip',
    ): ResponseInterface {
        return (new Compression())->process(
            new ServerRequest($method, '/', $accept === '' ? [] : ['Accept-Encoding' => $accept]),
            new Handler($response),
        );
    }

    private static function readBy(StreamInterface $body, int $length): string
    {
        $bytes = '';
        while (!$body->eof()) {
            $piece = $body->read($length);
            self::assertLessThanOrEqual($length, \strlen($piece));
            $bytes .= $piece;
        }

        return $bytes;
    }

    /** @param positive-int $bytes */
    private static function text(int $bytes): string
    {
        return substr(base64_encode(random_bytes($bytes)), 0, $bytes);
    }
}
