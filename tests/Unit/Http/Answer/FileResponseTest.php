<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Answer;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Answer\HttpDate;
use Spindle\Http\Response;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;

/** Tests {@see Response::file()}. */
final class FileResponseTest extends TestCase
{
    use LeavesNothing;
    use OwnDirectory;

    private const TEN = '0123456789';

    /** Modification time of the file, 2001-09-09. */
    private const TIME = 1_000_000_000;

    private const DATE = 'Sun, 09 Sep 2001 01:46:40 GMT';
    private const BEFORE = 'Sun, 09 Sep 2001 01:46:39 GMT';
    private const AFTER = 'Sun, 09 Sep 2001 01:46:41 GMT';

    public function testAFileIsSentWithItsTypeAndValidators(): void
    {
        $response = $this->get([]);

        self::assertSame(200, $response->getStatusCode());
        self::assertSame(self::TEN, (string) $response->getBody());
        self::assertSame(10, $response->getBody()->getSize());
        self::assertSame([
            'Content-Type' => ['text/plain; charset=utf-8'],
            'Last-Modified' => [self::DATE],
            'ETag' => [$this->tag()],
            'Accept-Ranges' => ['bytes'],
        ], self::sorted($response));
        self::assertMatchesRegularExpression('/^"[0-9a-f]+-a-3b9aca00"$/D', $this->tag());
    }

    public function testHeadGetsTheSameFields(): void
    {
        $head = $this->get([], 'HEAD');

        self::assertSame([200, 10], [$head->getStatusCode(), $head->getBody()->getSize()]);
        self::assertSame($this->get([])->getHeaders(), $head->getHeaders());
    }

    public function testAnEmptyFileIsSent(): void
    {
        $response = Response::file(
            $this->file('empty.txt', ''),
            new ServerRequest('GET', '/', ['Range' => 'bytes=0-']),
        );

        self::assertSame(
            [200, '', 0],
            [$response->getStatusCode(), (string) $response->getBody(), $response->getBody()->getSize()],
        );
    }

    /** @return iterable<string, array{string, string}> */
    public static function types(): iterable
    {
        yield 'a page' => ['index.html', 'text/html; charset=utf-8'];
        yield 'styles' => ['a.css', 'text/css; charset=utf-8'];
        yield 'a script' => ['a.min.mjs', 'text/javascript; charset=utf-8'];
        yield 'capitals' => ['A.JPG', 'image/jpeg'];
        yield 'JSON, which is UTF-8 without saying so' => ['a.json', 'application/json'];
        yield 'WebAssembly' => ['a.wasm', 'application/wasm'];
        yield 'the last extension counts' => ['a.html.zip', 'application/zip'];
        yield 'unknown' => ['a.unknown', 'application/octet-stream'];
        yield 'none' => ['html', 'application/octet-stream'];
        yield 'a dot at the end' => ['html.', 'application/octet-stream'];
    }

    #[DataProvider('types')]
    public function testTheTypeFollowsFromTheExtension(string $name, string $type): void
    {
        self::assertSame(
            $type,
            Response::file($this->file($name, 'content'), new ServerRequest('GET', '/'))->getHeaderLine('Content-Type'),
        );
    }

    public function testTheTypeCanBeGiven(): void
    {
        self::assertSame(
            'text/x-own',
            Response::file($this->ten(), new ServerRequest('GET', '/'), 'text/x-own')->getHeaderLine('Content-Type'),
        );
    }

    public function testGivenHeadersReplaceItsOwn(): void
    {
        $headers = [
            'content-type' => 'a/b',
            'ETAG' => '"own"',
            'last-modified' => self::AFTER,
            'Content-Disposition' => 'attachment',
            'accept-ranges' => 'none',
        ];
        $own = fn(array $conditions): Response
            => Response::file($this->ten(), new ServerRequest('GET', '/', $conditions), headers: $headers);

        self::assertEqualsCanonicalizing(
            [['a/b'], ['"own"'], [self::AFTER], ['attachment'], ['none']],
            array_values($own([])->getHeaders()),
        );
        self::assertSame(304, $own(['If-None-Match' => '"own"'])->getStatusCode());
        self::assertSame(200, $own(['If-None-Match' => $this->tag()])->getStatusCode());
        self::assertSame(304, $own(['If-Modified-Since' => self::AFTER])->getStatusCode());
        self::assertSame(200, $own(['If-Modified-Since' => self::DATE])->getStatusCode());
        self::assertSame(206, $own(['Range' => 'bytes=0-1', 'If-Range' => '"own"'])->getStatusCode());
    }

    public function testAnInvalidHeaderThrows(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        Response::file($this->ten(), new ServerRequest('GET', '/'), "text/html\r\nSet-Cookie: a=b");
    }

    public function testAMissingFileIsNotFound(): void
    {
        $this->expectExceptionObject(new HttpException(404, 'The file does not exist'));
        Response::file($this->path('absent'), new ServerRequest('GET', '/'));
    }

    /**
     * @return iterable<string, array{0: array<string, string>, 1: int, 2?: string}> "{tag}" stands for the file's own
     */
    public static function conditions(): iterable
    {
        yield 'If-Match: its tag' => [['If-Match' => '{tag}'], 200];
        yield 'If-Match: its tag among others' => [['If-Match' => '"a", {tag},"b"'], 200];
        yield 'If-Match: another' => [['If-Match' => '"a"'], 412];
        yield 'If-Match: its tag as a weak one' => [['If-Match' => 'W/{tag}'], 412];
        yield 'If-Match: any' => [['If-Match' => '*'], 200];
        yield 'If-Match: nothing' => [['If-Match' => ''], 412];
        yield 'If-Match: garbage' => [['If-Match' => 'garbage'], 412];

        yield 'If-None-Match: its tag' => [['If-None-Match' => '{tag}'], 304];
        yield 'If-None-Match: its tag as a weak one' => [['If-None-Match' => 'W/{tag}'], 304];
        yield 'If-None-Match: its tag among others' => [['If-None-Match' => '"a,b" , W/"c",{tag}'], 304];
        yield 'If-None-Match: others' => [['If-None-Match' => '"a", "b"'], 200];
        yield 'If-None-Match: any' => [['If-None-Match' => '*'], 304];
        yield 'If-None-Match: any, with blanks' => [['If-None-Match' => ' * '], 304];
        yield 'If-None-Match: a tag that is a star' => [['If-None-Match' => '"*"'], 200];
        yield 'If-None-Match: garbage' => [['If-None-Match' => 'garbage'], 200];
        yield 'If-None-Match: no end' => [['If-None-Match' => '"a'], 200];

        yield 'If-Modified-Since: that second' => [['If-Modified-Since' => self::DATE], 304];
        yield 'If-Modified-Since: a second later' => [['If-Modified-Since' => self::AFTER], 304];
        yield 'If-Modified-Since: a second earlier' => [['If-Modified-Since' => self::BEFORE], 200];
        yield 'If-Modified-Since: in the old form' => [['If-Modified-Since' => 'Sunday, 09-Sep-01 01:46:40 GMT'], 304];
        yield 'If-Modified-Since: the future' => [['If-Modified-Since' => 'Thu, 31 Dec 2099 00:00:00 GMT'], 304];
        yield 'If-Modified-Since: no date' => [['If-Modified-Since' => '1000000000'], 200];

        yield 'If-Unmodified-Since: that second' => [['If-Unmodified-Since' => self::DATE], 200];
        yield 'If-Unmodified-Since: a second later' => [['If-Unmodified-Since' => self::AFTER], 200];
        yield 'If-Unmodified-Since: a second earlier' => [['If-Unmodified-Since' => self::BEFORE], 412];
        yield 'If-Unmodified-Since: no date' => [['If-Unmodified-Since' => '1'], 200];

        yield 'If-None-Match hides If-Modified-Since: changed' => [
            ['If-None-Match' => '"a"', 'If-Modified-Since' => self::DATE],
            200,
        ];
        yield 'If-None-Match hides If-Modified-Since: unchanged' => [
            ['If-None-Match' => '{tag}', 'If-Modified-Since' => self::BEFORE],
            304,
        ];
        yield 'If-Match hides If-Unmodified-Since: it holds' => [
            ['If-Match' => '{tag}', 'If-Unmodified-Since' => self::BEFORE],
            200,
        ];
        yield 'If-Match hides If-Unmodified-Since: it does not' => [
            ['If-Match' => '"a"', 'If-Unmodified-Since' => self::AFTER],
            412,
        ];
        yield 'If-Match comes before If-None-Match' => [['If-Match' => '"a"', 'If-None-Match' => '{tag}'], 412];
        yield 'If-Match leaves the rest to If-None-Match' => [['If-Match' => '{tag}', 'If-None-Match' => '{tag}'], 304];
        yield 'If-Unmodified-Since comes before If-None-Match' => [
            ['If-Unmodified-Since' => self::BEFORE, 'If-None-Match' => '{tag}'],
            412,
        ];
        yield 'If-Unmodified-Since leaves the rest to If-Modified-Since' => [
            ['If-Unmodified-Since' => self::DATE, 'If-Modified-Since' => self::DATE],
            304,
        ];

        yield 'a range of what the client has' => [['If-None-Match' => '{tag}', 'Range' => 'bytes=0-1'], 304];
        yield 'a range of what has changed' => [['If-None-Match' => '"a"', 'Range' => 'bytes=0-1'], 206, '01'];
        yield 'a range that is not there of what the client has' => [
            ['If-None-Match' => '{tag}', 'Range' => 'bytes=10-'],
            304,
        ];
        yield 'a range that has to be of a version that is gone' => [
            ['If-Match' => '"a"', 'Range' => 'bytes=0-1'],
            412,
        ];

        yield 'If-Range: its tag' => [['If-Range' => '{tag}', 'Range' => 'bytes=0-1'], 206, '01'];
        yield 'If-Range: its tag as a weak one' => [['If-Range' => 'W/{tag}', 'Range' => 'bytes=0-1'], 200];
        yield 'If-Range: another' => [['If-Range' => '"a"', 'Range' => 'bytes=0-1'], 200];
        yield 'If-Range: another, and a range that is not there' => [
            ['If-Range' => '"a"', 'Range' => 'bytes=10-'],
            200,
        ];
        yield 'If-Range: its tag, and a range that is not there' => [
            ['If-Range' => '{tag}', 'Range' => 'bytes=10-'],
            416,
            "Range Not Satisfiable\n",
        ];
        yield 'If-Range: its tag among others' => [['If-Range' => '{tag}, "a"', 'Range' => 'bytes=0-1'], 200];
        yield 'If-Range: any' => [['If-Range' => '*', 'Range' => 'bytes=0-1'], 200];
        yield 'If-Range: its time' => [['If-Range' => self::DATE, 'Range' => 'bytes=0-1'], 206, '01'];
        yield 'If-Range: a later time, which is another' => [['If-Range' => self::AFTER, 'Range' => 'bytes=0-1'], 200];
        yield 'If-Range: an earlier time' => [['If-Range' => self::BEFORE, 'Range' => 'bytes=0-1'], 200];
        yield 'If-Range: garbage' => [['If-Range' => 'garbage', 'Range' => 'bytes=0-1'], 200];
        yield 'If-Range without a range' => [['If-Range' => '"a"'], 200];
    }

    /** @param array<string, string> $headers */
    #[DataProvider('conditions')]
    public function testConditionsAreEvaluatedInTheirOrder(array $headers, int $status, ?string $content = null): void
    {
        $response = $this->get(str_replace('{tag}', $this->tag(), $headers));

        self::assertSame($status, $response->getStatusCode());
        self::assertSame(
            $content ?? [200 => self::TEN, 304 => '', 412 => "Precondition Failed\n"][$status] ?? null,
            (string) $response->getBody(),
        );
    }

    /**
     * @return iterable<string, array{0: string, 1: string, 2?: string}> the Range field, the content, and Content-Range
     *                                                                   for 206 and 416
     */
    public static function ranges(): iterable
    {
        yield 'the first byte' => ['bytes=0-0', '0', 'bytes 0-0/10'];
        yield 'the middle' => ['bytes=2-5', '2345', 'bytes 2-5/10'];
        yield 'the last byte' => ['bytes=9-9', '9', 'bytes 9-9/10'];
        yield 'all' => ['bytes=0-9', self::TEN, 'bytes 0-9/10'];
        yield 'from the beginning, open' => ['bytes=0-', self::TEN, 'bytes 0-9/10'];
        yield 'open' => ['bytes=7-', '789', 'bytes 7-9/10'];
        yield 'beyond the end' => ['bytes=7-10', '789', 'bytes 7-9/10'];
        yield 'far beyond the end' => ['bytes=7-99999999999999999999999', '789', 'bytes 7-9/10'];
        yield 'the last ones' => ['bytes=-3', '789', 'bytes 7-9/10'];
        yield 'as many of the last as there are' => ['bytes=-10', self::TEN, 'bytes 0-9/10'];
        yield 'more of the last than there are' => ['bytes=-11', self::TEN, 'bytes 0-9/10'];
        yield 'many more of the last' => ['bytes=-99999999999999999999999', self::TEN, 'bytes 0-9/10'];
        yield 'zeros' => ['bytes=0002-0005', '2345', 'bytes 2-5/10'];
        yield 'capitals' => ['BYTES=2-5', '2345', 'bytes 2-5/10'];
        yield 'blanks around it' => ["bytes= 2-5\t", '2345', 'bytes 2-5/10'];
        yield 'empty members' => ['bytes=,, 2-5 , ,', '2345', 'bytes 2-5/10'];

        yield 'behind the end' => ['bytes=10-', "Range Not Satisfiable\n", 'bytes */10'];
        yield 'behind the end, closed' => ['bytes=10-20', "Range Not Satisfiable\n", 'bytes */10'];
        yield 'far behind the end' => ['bytes=99999999999999999999999-', "Range Not Satisfiable\n", 'bytes */10'];
        yield 'none of the last' => ['bytes=-0', "Range Not Satisfiable\n", 'bytes */10'];
        yield 'several that are not there' => ['bytes=10-, 20-30, -0', "Range Not Satisfiable\n", 'bytes */10'];

        yield 'several' => ['bytes=0-1,4-5', self::TEN];
        yield 'several that touch each other' => ['bytes=0-1,2-3', self::TEN];
        yield 'very many' => ['bytes=' . str_repeat('0-,', 1000) . '0-', self::TEN];
        yield 'several, of which one is within the file' => ['bytes=20-30, 4-5, 10-', '45', 'bytes 4-5/10'];

        yield 'the wrong way round' => ['bytes=5-2', self::TEN];
        yield 'one of several the wrong way round' => ['bytes=0-1,5-2', self::TEN];
        yield 'another unit' => ['lines=0-1', self::TEN];
        yield 'no unit' => ['0-1', self::TEN];
        yield 'no number' => ['bytes=-', self::TEN];
        yield 'no range' => ['bytes=', self::TEN];
        yield 'nothing but commas' => ['bytes=,,', self::TEN];
        yield 'no dash' => ['bytes=1', self::TEN];
        yield 'two dashes' => ['bytes=1--2', self::TEN];
        yield 'three numbers' => ['bytes=1-2-3', self::TEN];
        yield 'hexadecimal' => ['bytes=0x1-0x2', self::TEN];
        yield 'a sign' => ['bytes=+1-2', self::TEN];
        yield 'a blank within' => ['bytes=1 - 2', self::TEN];
        yield 'a blank before the sign' => ['bytes =1-2', self::TEN];
        yield 'a fraction' => ['bytes=1.0-2', self::TEN];
        yield 'two fields, as they are joined' => ['bytes=0-1, bytes=2-3', self::TEN];
        yield 'garbage behind' => ['bytes=0-1;', self::TEN];
    }

    #[DataProvider('ranges')]
    public function testAValidRangeIsSent(string $range, string $content, string $told = ''): void
    {
        $response = $this->get(['Range' => $range]);

        self::assertSame($told === '' ? 200 : (str_contains($told, '*') ? 416 : 206), $response->getStatusCode());
        self::assertSame($content, (string) $response->getBody());
        self::assertSame(\strlen($content), $response->getBody()->getSize());
        self::assertSame($told, $response->getHeaderLine('Content-Range'));
        self::assertSame('bytes', $response->getHeaderLine('Accept-Ranges'));
    }

    public function testARangeHasTheFieldsOfTheWholeFile(): void
    {
        self::assertSame(
            ['Content-Range' => ['bytes 0-0/10']],
            array_diff_key(self::sorted($this->get(['Range' => 'bytes=0-0'])), self::sorted($this->get([]))),
        );
        self::assertSame(
            [],
            array_diff_key(self::sorted($this->get([])), self::sorted($this->get(['Range' => 'bytes=0-0']))),
        );
    }

    public function testRangesApplyOnlyToGet(): void
    {
        $head = $this->get(['Range' => 'bytes=0-1'], 'HEAD');

        self::assertSame([200, ''], [$head->getStatusCode(), $head->getHeaderLine('Content-Range')]);
        self::assertSame(200, $this->get(['Range' => 'bytes=10-'], 'HEAD')->getStatusCode());
    }

    public function testConditionsApplyToHead(): void
    {
        self::assertSame(304, $this->get(['If-None-Match' => '*'], 'HEAD')->getStatusCode());
        self::assertSame(412, $this->get(['If-Match' => '"a"'], 'HEAD')->getStatusCode());
    }

    public function testOtherMethodsGetTheWholeFileUnconditionally(): void
    {
        $response = $this->get(
            ['If-None-Match' => '*', 'If-Match' => '"a"', 'Range' => 'bytes=0-1', 'If-Modified-Since' => self::DATE],
            'POST',
        );

        self::assertSame([200, self::TEN], [$response->getStatusCode(), (string) $response->getBody()]);
    }

    public function testNotModifiedHasTheFieldsThatACacheNeeds(): void
    {
        $response = Response::file(
            $this->ten(),
            new ServerRequest('GET', '/', ['If-None-Match' => '*']),
            headers: ['Cache-Control' => 'max-age=1', 'Vary' => 'Cookie'],
        );

        self::assertSame(
            [
                'Cache-Control' => ['max-age=1'],
                'Vary' => ['Cookie'],
                'Last-Modified' => [self::DATE],
                'ETag' => [$this->tag()],
            ],
            self::sorted($response),
        );
    }

    public function testAnotherLengthTimeOrFileChangesTheTag(): void
    {
        $tags = [$this->tag()];
        file_put_contents($this->path('ten.txt'), 'ten', \FILE_APPEND);
        $tags[] = self::tagOf($this->path('ten.txt'), self::TIME);
        $tags[] = self::tagOf($this->path('ten.txt'), self::TIME + 1);
        rename($this->file('other', '0123456789ten'), $this->path('ten.txt'));
        $tags[] = self::tagOf($this->path('ten.txt'), self::TIME + 1);

        self::assertCount(4, array_unique($tags));
    }

    public function testAFileOfThisSecondHasAWeakTagAndNoRanges(): void
    {
        $this->ten();
        touch($this->path('ten.txt'), time());
        $get = fn(array $headers): Response
            => Response::file($this->path('ten.txt'), new ServerRequest('GET', '/', $headers));
        $tag = $get([])->getHeaderLine('ETag');
        $date = $get([])->getHeaderLine('Last-Modified');

        self::assertStringStartsWith('W/"', $tag);
        self::assertSame(304, $get(['If-None-Match' => $tag])->getStatusCode());
        self::assertSame(412, $get(['If-Match' => $tag])->getStatusCode());
        self::assertSame(200, $get(['If-Range' => $tag, 'Range' => 'bytes=0-1'])->getStatusCode());
        self::assertSame(200, $get(['If-Range' => $date, 'Range' => 'bytes=0-1'])->getStatusCode());
    }

    public function testAModificationTimeInTheFutureIsNotSent(): void
    {
        $this->ten();
        touch($this->path('ten.txt'), time() + 86_400);
        $response = Response::file($this->path('ten.txt'), new ServerRequest('GET', '/'));
        $told = HttpDate::parse($response->getHeaderLine('Last-Modified'), time());

        self::assertNotNull($told);
        self::assertLessThanOrEqual(time(), $told);
        self::assertStringStartsWith('W/', $response->getHeaderLine('ETag'));
    }

    /** @param array<string, string> $headers */
    private function get(array $headers, string $method = 'GET'): Response
    {
        return Response::file($this->ten(), new ServerRequest($method, '/', $headers));
    }

    private function ten(): string
    {
        $path = $this->path('ten.txt');
        if (!file_exists($path)) {
            $this->file('ten.txt', self::TEN);
            touch($path, self::TIME);
        }

        return $path;
    }

    private function tag(): string
    {
        return self::tagOf($this->ten(), self::TIME);
    }

    private static function tagOf(string $path, int $time): string
    {
        touch($path, $time);

        return Response::file($path, new ServerRequest('GET', '/'))->getHeaderLine('ETag');
    }

    /** @return array<string, list<string>> */
    private static function sorted(Response $response): array
    {
        $order = array_flip(
            ['Content-Type', 'Cache-Control', 'Vary', 'Last-Modified', 'ETag', 'Accept-Ranges', 'Content-Range'],
        );
        $headers = $response->getHeaders();
        uksort($headers, static fn(string $a, string $b): int => $order[$a] <=> $order[$b]);

        return $headers;
    }
}
