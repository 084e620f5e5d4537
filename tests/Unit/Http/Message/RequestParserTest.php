<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;

final class RequestParserTest extends TestCase
{
    use OwnDirectory;

    private const CHUNKED = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    private RequestParser $parser;

    protected function setUp(): void
    {
        $this->parser = new RequestParser(new MessageLimits());
    }

    /** @return iterable<string, array{string, array{string, string, string, string, string, ?int, bool, bool}}> */
    public static function heads(): iterable
    {
        yield 'plain' => [
            "GET /a?b HTTP/1.1\r\nX:  y \r\nHOST: a:80 \r\n\r\n",
            ['GET', '/a?b', '1.1', "X:  y \r\nHOST: a:80 \r\n", 'a:80', 0, true, false],
        ];
        yield 'with a body' => [
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n",
            ['PUT', '/', '1.1', "Host: a\r\nContent-Length: 12\r\n", 'a', 12, true, false],
        ];
        yield 'with chunks' => [
            self::CHUNKED,
            ['POST', '/', '1.1', "Host: a\r\nTransfer-Encoding: chunked\r\n", 'a', null, true, false],
        ];
        yield 'with a wait' => [
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
            ['PUT', '/', '1.1', "Host: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n", 'a', 1, true, true],
        ];
        yield 'with an end' => [
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            ['GET', '/', '1.1', "Host: a\r\nConnection: close\r\n", 'a', 0, false, false],
        ];
        yield 'of HTTP/1.0' => [
            "GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
            ['GET', '/', '1.0', "Expect: 100-continue\r\n", '', 0, false, false],
        ];
        yield 'of HTTP/1.0 without fields' => ["GET / HTTP/1.0\r\n\r\n", ['GET', '/', '1.0', '', '', 0, false, false]];
        yield 'of a later version' => [
            "GET / HTTP/1.7\r\nHost: a\r\n\r\n",
            ['GET', '/', '1.1', "Host: a\r\n", 'a', 0, true, false],
        ];
    }

    /** @param array{string, string, string, string, string, ?int, bool, bool} $said */
    #[DataProvider('heads')]
    public function testAHeadHasTheMeaningOfItsLines(string $bytes, array $said): void
    {
        $this->parser->push($bytes);
        self::assertSame($said, self::said($this->parser->readHead()), 'at once');

        $parser = new RequestParser(new MessageLimits());
        foreach (str_split(substr($bytes, 0, -1)) as $byte) {
            $parser->push($byte);
            self::assertNull($parser->readHead());
        }
        $parser->push("\n");
        self::assertSame($said, self::said($parser->readHead()), 'byte by byte');
    }

    public function testTheMeaningOfAFieldIsTheSameInEachLocale(): void
    {
        $read = static fn(string $field): Head => self::headOf("GET / HTTP/1.1\r\nHost: a\r\n{$field}\r\n\r\n");
        $heads = Locale::withDotlessI($this->path(), static fn(): array => [
            $read('TRANSFER-ENCODING: chunked'),
            $read('CONNECTION: CLOSE'),
        ]);
        $heads ?? self::markTestSkipped('The locale can not be loaded');

        self::assertNull($heads[0]->length);
        self::assertFalse($heads[1]->persistent);
    }

    public function testBytesThatWereNotConsumedAreKeptInTheirOrder(): void
    {
        $this->parser->push("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n");
        $this->parser->push("Host: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n");

        self::assertSame('/1', $this->parser->readHead()?->target);
        $this->parser->push("GET /4 HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertSame(
            ['/2', '/3', '/4', null],
            [
                $this->parser->readHead()?->target,
                $this->parser->readHead()?->target,
                $this->parser->readHead()?->target,
                $this->parser->readHead(),
            ],
        );
    }

    public function testTheParserIsIdleBetweenMessages(): void
    {
        self::assertTrue($this->parser->isIdle());
        $this->parser->push('POST / HTTP/1.1');
        self::assertFalse($this->parser->isIdle());
        self::assertNull($this->parser->readHead());
        self::assertFalse($this->parser->isIdle());
        $this->parser->push("\r\nHost: a\r\nContent-Length: 2\r\n");
        self::assertNull($this->parser->readHead());
        self::assertSame(0, $this->parser->buffered());
        self::assertFalse($this->parser->isIdle(), 'in a head of which all lines were taken');
        $this->parser->push("\r\n");
        self::assertNotNull($this->parser->readHead());
        self::assertFalse($this->parser->isIdle(), 'before a body');
        $this->parser->push('ab');
        self::assertSame('ab', $this->parser->readBody());
        self::assertTrue($this->parser->isIdle());
        $this->parser->push(self::CHUNKED);
        self::assertNotNull($this->parser->readHead());
        self::assertFalse($this->parser->isIdle(), 'before chunks');
        $this->parser->push("0\r\n\r\n");
        self::assertSame('', $this->parser->readBody());
        self::assertTrue($this->parser->isIdle());
    }

    public function testTheParserIsIdleAfterOnlyOneEmptyLine(): void
    {
        $this->parser->push("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab\r\n");
        self::assertNotNull($this->parser->readHead());
        self::assertNull($this->parser->readHead());
        self::assertTrue($this->parser->isIdle(), 'an empty line begins no message');
        $this->parser->push("\r\n");
        self::assertNull($this->parser->readHead());
        self::assertFalse($this->parser->isIdle(), 'a client could send empty lines for ever');
        $this->parser->push("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertSame('/next', $this->parser->readHead()?->target);
    }

    #[TestWith(["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", 'ab'])]
    #[TestWith([self::CHUNKED, "2\r\nab\r\n0\r\nX: y\r\n\r\n"])]
    public function testTheParserIsIdleAfterASkippedBody(string $head, string $body): void
    {
        $this->parser->push($head . $body);

        self::assertNotNull($this->parser->readHead());
        self::assertNull($this->parser->readHead());
        self::assertTrue($this->parser->isIdle());
    }

    #[TestWith(["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 'hello'])]
    #[TestWith([self::CHUNKED, "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"])]
    public function testTheRestOfABodyIsSkippedBeforeTheNextHead(string $head, string $body): void
    {
        $this->parser->push($head . substr($body, 0, 4));
        self::assertNotNull($this->parser->readHead());
        $taken = $this->parser->readBody();
        self::assertNotSame('', $taken);
        self::assertStringStartsWith($taken, 'hello');
        self::assertNull($this->parser->readHead());
        self::assertFalse($this->parser->isIdle());
        $this->parser->push(substr($body, 4) . "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");

        self::assertSame('/next', $this->parser->readHead()?->target);
        self::assertTrue($this->parser->bodyEnded());
    }

    public function testABodyIsReturnedAsItArrives(): void
    {
        $this->parser->push("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
        self::assertSame(5, $this->parser->readHead()?->length);

        self::assertSame(
            ['he', '', 3, false],
            [
                $this->parser->readBody(),
                $this->parser->readBody(),
                $this->parser->remaining(),
                $this->parser->bodyEnded(),
            ],
        );
        $this->parser->push('lloGET');
        self::assertSame(
            ['llo', '', 0, true, 3],
            [
                $this->parser->readBody(),
                $this->parser->readBody(),
                $this->parser->remaining(),
                $this->parser->bodyEnded(),
                $this->parser->buffered(),
            ],
        );
    }

    public function testChunksAreReturnedAsTheyArrive(): void
    {
        $this->parser->push(self::CHUNKED . "5;a=b\r\nhe");
        $head = $this->parser->readHead();
        self::assertNotNull($head);
        self::assertNull($head->length);

        self::assertSame(
            ['he', null, false],
            [$this->parser->readBody(), $this->parser->remaining(), $this->parser->bodyEnded()],
        );
        $this->parser->push("llo\r\n1\r\n!\r\n0");
        self::assertSame(
            ['llo!', '', null, false],
            [
                $this->parser->readBody(),
                $this->parser->trailers(),
                $this->parser->remaining(),
                $this->parser->bodyEnded(),
            ],
        );
        $this->parser->push("\r\nX:  y\r\nZ:\r\n\r\nGET");
        self::assertSame(
            ['', "X:  y\r\nZ:\r\n", true, 3],
            [
                $this->parser->readBody(),
                $this->parser->trailers(),
                $this->parser->bodyEnded(),
                $this->parser->buffered(),
            ],
        );
    }

    public function testARequestWithoutABodyHasNone(): void
    {
        $this->parser->push("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1");

        self::assertSame(0, $this->parser->readHead()?->length);
        self::assertSame(
            ['', 0, true, ''],
            [
                $this->parser->readBody(),
                $this->parser->remaining(),
                $this->parser->bodyEnded(),
                $this->parser->trailers(),
            ],
        );
    }

    #[TestWith(["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n", ''])]
    #[TestWith([self::CHUNKED, "2710\r\n"])]
    public function testMemoryDoesNotGrowWithABody(string $head, string $size): void
    {
        $this->parser->push($head);
        self::assertNotNull($this->parser->readHead());
        $piece = $size . str_repeat('x', 10_000) . ($size === '' ? '' : "\r\n");
        $before = memory_get_usage();
        for ($i = 0; $i < 10_000; ++$i) {
            $this->parser->push($piece);
            self::assertSame(10_000, \strlen($this->parser->readBody()));
        }

        self::assertLessThan(100_000, memory_get_usage() - $before);
    }

    public function testTheLimitsOfAHeadAreExactHoweverItIsSplit(): void
    {
        $line = static fn(int $target): string => 'GET /' . str_repeat('a', $target - 1) . " HTTP/1.1\r\nHost: a\r\n";
        $fields = static fn(int $count): string => "GET / HTTP/1.1\r\nHost: a\r\n" . str_repeat("X: y\r\n", $count - 1);
        $head = static fn(int $size): string => "GET / HTTP/1.1\r\nHost: a\r\nX:" . str_repeat('a', $size - 31);
        foreach ([
            [$line(8192) . "\r\n", 0], [$line(8193) . "\r\n", 414], [substr($line(9000), 0, 8259), 414],
            [$fields(100) . "\r\n", 0], [$fields(101), 431],
            [$head(32_768) . "\r\n\r\n", 0], [$head(32_769) . "\r\n\r\n", 431], [$head(33_000), 431],
        ] as [$bytes, $status]) {
            self::assertSame($status, self::verdict([$bytes]));
            self::assertSame($status, self::verdict(str_split($bytes, 100)));
        }
    }

    public function testExtensionsOfChunksMayExceedTheDataUpToALimit(): void
    {
        foreach ([
            [str_repeat("1;a=b\r\nx\r\n", 5460) . "0\r\n\r\n", 0], [str_repeat("1;a=b\r\nx\r\n", 5470), 400],
            [str_repeat("4;a=b\r\nword\r\n", 10_000) . "0\r\n\r\n", 0],
            ['1;a' . str_repeat('a', 16_380) . "\r\nx\r\n0\r\n\r\n", 0], ['1;a' . str_repeat('a', 16_400), 400],
            [
                '1;a="' . str_repeat('\"', 8000) . "\"\r\nx\r\n0\r\n\r\n",
                0,
            ], ['1' . str_repeat(';a', 8000) . "\r\nx\r\n0\r\n\r\n", 0],
        ] as [$chunks, $status]) {
            self::assertSame($status, self::verdict([self::CHUNKED . $chunks]));
            self::assertSame($status, self::verdict(str_split(self::CHUNKED . $chunks, 50)));
        }
    }

    public function testARefusalNamesTheFault(): void
    {
        foreach ([
            "GET / HTTP/1.1\nHost: a\r\n\r\n" => 'A line ends without CR',
            "GET / HTTP/1.1\r\n\r\n" => 'The request has no Host field',
            "GET /\r\n" => 'The request line is malformed',
            "GET / HTTP/2.0\r\n" => 'This server supports only HTTP/1.1 and HTTP/1.0',
            self::CHUNKED . "x\r\n" => 'The size of a chunk is malformed',
            self::CHUNKED . "1\r\nxx\r\n" => 'The data of a chunk does not end where its size says',
        ] as $bytes => $message) {
            $parser = new RequestParser(new MessageLimits());
            $parser->push($bytes);
            try {
                $parser->readHead();
                $parser->readBody();
                self::fail('It is accepted');
            } catch (BadMessageException $refusal) {
                self::assertSame($message, $refusal->getMessage());
            }
        }
    }

    /** @return list<string|int|bool|null> */
    private static function said(?Head $head): array
    {
        self::assertNotNull($head);

        return [
            $head->method,
            $head->target,
            $head->version,
            $head->fields,
            $head->host,
            $head->length,
            $head->persistent,
            $head->expectsContinue,
        ];
    }

    private static function headOf(string $bytes): Head
    {
        $parser = new RequestParser(new MessageLimits());
        $parser->push($bytes);

        return $parser->readHead() ?? self::fail('The head is incomplete');
    }

    /**
     * @param list<string> $pieces
     *
     * @return int the status of the refusal; 0 when they form a complete request
     */
    private static function verdict(array $pieces): int
    {
        $parser = new RequestParser(new MessageLimits());
        $head = null;
        try {
            foreach ($pieces as $piece) {
                $parser->push($piece);
                $head ??= $parser->readHead();
                $parser->readBody();
            }
        } catch (BadMessageException $refusal) {
            return $refusal->status;
        }
        self::assertTrue($head !== null && $parser->isIdle());

        return 0;
    }
}
