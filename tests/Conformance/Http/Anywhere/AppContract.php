<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Response;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;

/**
 * An application gives the same response under every server: status, reason, header fields and every byte of the body.
 *
 * Fields of the web server are ignored: Date, Server and those of the connection.
 */
abstract class AppContract extends TestCase
{
    use EndsInTime;

    protected const APP = __DIR__ . '/app.php';

    private const SERVERS_OWN = ['Date' => true, 'Server' => true, 'Host' => true];

    private const TEXT = 'text/plain; charset=utf-8';
    private const BYTES = 'application/octet-stream';

    /**
     * @return iterable<string, array{string, string, string, array<string, string|list<string>>}> by request: reason
     *         and status, body, header fields
     */
    public static function gets(): iterable
    {
        yield 'text' => ['GET /text', '200 OK', "Grüße\n", ['Content-Type' => self::TEXT, 'Content-Length' => '8']];
        yield 'no body to HEAD' => [
            'HEAD /text',
            '200 OK',
            '',
            ['Content-Type' => self::TEXT, 'Content-Length' => '8'],
        ];
        yield 'an error page of its own' => [
            'GET /html',
            '404 Not Found',
            '<p>Hello</p>',
            ['Content-Type' => 'text/html; charset=utf-8', 'Content-Length' => '12'],
        ];
        yield 'JSON' => [
            'GET /json',
            '200 OK',
            '{"a/b":"ü","n":1.5}',
            ['Content-Type' => 'application/json', 'Content-Length' => '20'],
        ];
        yield 'every byte' => [
            'GET /binary',
            '200 OK',
            implode('', array_map(\chr(...), range(0, 255))),
            ['Content-Type' => self::BYTES, 'Content-Length' => '256'],
        ];
        yield 'a redirect' => [
            'GET /redirect',
            '303 See Other',
            '',
            ['Location' => '/there?a=b%20c', 'Content-Length' => '0'],
        ];
        yield 'a location without a redirect' => [
            'GET /accepted',
            '202 Accepted',
            'queued',
            ['Location' => '/jobs/7', 'Content-Length' => '6'],
        ];
        yield 'a location with the status 200' => [
            'GET /located',
            '200 OK',
            'here',
            ['Location' => '/jobs/7', 'Content-Length' => '4'],
        ];
        yield 'a location and a reason of its own' => [
            'GET /created',
            '201 Made',
            'made',
            ['Location' => '/jobs/7', 'Content-Length' => '4'],
        ];
        yield 'a location and no reason' => [
            'GET /nameless',
            '202 Accepted',
            'queued',
            ['Location' => '/jobs/7', 'Content-Length' => '6'],
        ];
        yield 'a challenge with another status' => [
            'GET /scope',
            '403 Forbidden',
            'no',
            ['WWW-Authenticate' => 'Bearer', 'Content-Length' => '2'],
        ];
        yield 'no content' => ['GET /no-content', '204 No Content', '', ['X-Kept' => 'yes']];
        yield 'content that is reset' => [
            'GET /reset',
            '205 Reset Content',
            '',
            ['X-Kept' => 'yes', 'Content-Length' => '0'],
        ];
        yield 'a stream that is reset' => [
            'GET /reset-stream',
            '205 Reset Content',
            '',
            ['Content-Type' => 'text/plain', 'Content-Length' => '0'],
        ];
        yield 'content that is reset to HEAD' => [
            'HEAD /reset',
            '205 Reset Content',
            '',
            ['X-Kept' => 'yes', 'Content-Length' => '0'],
        ];
        yield 'not modified' => ['GET /not-modified', '304 Not Modified', '', ['ETag' => '"1"']];
        yield 'no content to HEAD' => ['HEAD /no-content', '204 No Content', '', ['X-Kept' => 'yes']];
        yield 'not modified to HEAD' => ['HEAD /not-modified', '304 Not Modified', '', ['ETag' => '"1"']];
        yield 'no type' => ['GET /no-type', '200 OK', 'bytes', ['Content-Length' => '5']];
        yield 'two fields of a name' => [
            'GET /cookies',
            '200 OK',
            'two',
            ['Set-Cookie' => ['a=1; Path=/', 'b=2'], 'Content-Length' => '3'],
        ];
        yield 'a reason of its own' => [
            'GET /teapot',
            "418 I'm a teapot",
            'short and stout',
            ['Content-Length' => '15'],
        ];
        yield 'a wrong length' => ['GET /wrong-length', '200 OK', 'longer', ['Content-Length' => '6']];
        yield 'a wrong length to HEAD' => ['HEAD /wrong-length', '200 OK', '', ['Content-Length' => '6']];
        foreach (['3', '9'] as $length) {
            $target = "/wrong-stream-length?{$length}";
            yield "the wrong length {$length} of a stream" => [
                "GET {$target}",
                '200 OK',
                'longer',
                ['Content-Length' => '6'],
            ];
            yield "the wrong length {$length} of a stream to HEAD" => [
                "HEAD {$target}",
                '200 OK',
                '',
                ['Content-Length' => '6'],
            ];
        }
        yield 'a stream' => ['GET /stream', '200 OK', 'one,two', ['Content-Type' => 'text/plain']];
        yield 'a stream that has nothing at times' => ['GET /hesitant', '200 OK', 'one,two', []];
        yield 'a callback' => ['GET /callback', '200 OK', 'made at once', ['X-Kept' => 'yes']];
        yield 'a callback to HEAD' => ['HEAD /callback', '200 OK', '', ['X-Kept' => 'yes']];
        yield 'a callback with a length' => ['GET /callback-cut', '200 OK', 'made', ['Content-Length' => '4']];
        yield 'a file in another mode' => ['GET /unknown-mode', '200 OK', '0123456789', ['Content-Length' => '10']];
        yield 'no length to HEAD where there is no body' => ['HEAD /empty', '200 OK', '', ['X-Kept' => 'yes']];
        yield 'no length to HEAD where a stream has nothing' => [
            'HEAD /empty-stream',
            '200 OK',
            '',
            ['X-Kept' => 'yes'],
        ];
        yield 'a length of nothing' => ['GET /empty', '200 OK', '', ['X-Kept' => 'yes', 'Content-Length' => '0']];
        yield 'an upgrade that is required' => [
            'GET /upgrade',
            '426 Upgrade Required',
            'needed',
            ['Upgrade' => 'HTTP/3.0', 'Content-Length' => '6'],
        ];
        yield 'an interim status' => [
            'GET /interim',
            '500 Internal Server Error',
            "Internal Server Error\n",
            ['Content-Type' => self::TEXT, 'Content-Length' => '22'],
        ];
        yield 'a line break in a field' => [
            'GET /injects',
            '500 Internal Server Error',
            "Internal Server Error\n",
            ['Content-Type' => self::TEXT, 'Content-Length' => '22'],
        ];
        yield 'a line break in a reason' => ['GET /hostile-reason', '404 Not Found', 'body', ['Content-Length' => '4']];
        yield 'no reason' => ['GET /no-reason', '404 Not Found', 'body', ['Content-Length' => '4']];
        yield 'no stream to HEAD' => ['HEAD /stream', '200 OK', '', ['Content-Type' => 'text/plain']];
        yield 'fibers' => [
            'GET /waits',
            '200 OK',
            '["a","b"]',
            ['Content-Type' => 'application/json', 'Content-Length' => '9'],
        ];
        yield 'an exception' => [
            'GET /throws',
            '500 Internal Server Error',
            "Internal Server Error\n",
            ['Content-Type' => self::TEXT, 'Content-Length' => '22'],
        ];
        yield 'an exception with a status' => [
            'GET /refuses',
            '409 Conflict',
            "The name is taken\n",
            ['Content-Type' => self::TEXT, 'Content-Length' => '18', 'X-Name' => 'taken'],
        ];
        yield 'a body that fails before its first piece' => [
            'GET /fails-first',
            '404 Not Found',
            "No rows\n",
            ['Content-Type' => self::TEXT, 'Content-Length' => '8', 'X-Name' => 'rows'],
        ];
        yield 'a callback that fails' => [
            'GET /callback-fails',
            '404 Not Found',
            "No rows\n",
            ['Content-Type' => self::TEXT, 'Content-Length' => '8', 'X-Name' => 'rows'],
        ];
        foreach (['GET' => 'whole', 'HEAD' => ''] as $method => $body) {
            yield "a body that can not be closed, {$method}" => [
                "{$method} /not-closable",
                '200 OK',
                $body,
                ['Content-Type' => 'text/plain'],
            ];
        }
        yield 'a callback that is not called' => ['HEAD /callback-fails', '200 OK', '', ['X-Kept' => 'yes']];
        yield 'a body that is not read' => [
            'HEAD /fails-first',
            '200 OK',
            '',
            ['Content-Type' => 'text/csv', 'Set-Cookie' => 'a=1'],
        ];
        foreach (['/fails-first-length', '/read', '/callback-read'] as $target) {
            yield "a body without a first piece: {$target}" => [
                "GET {$target}",
                '500 Internal Server Error',
                "Internal Server Error\n",
                ['Content-Type' => self::TEXT, 'Content-Length' => '22'],
            ];
        }
        yield 'what is printed' => [
            'GET /prints',
            '200 OK',
            'answered',
            ['Content-Type' => self::TEXT, 'Content-Length' => '8'],
        ];
        yield 'what is printed into a buffer that is left open' => [
            'GET /leaves-buffers',
            '200 OK',
            'answered',
            ['Content-Type' => self::TEXT, 'Content-Length' => '8'],
        ];
        yield 'what is printed and flushed' => [
            'GET /flushes',
            '200 OK',
            'answered',
            ['Content-Type' => self::TEXT, 'Content-Length' => '8'],
        ];
        yield 'an unknown path' => [
            'GET /nowhere',
            '404 Not Found',
            "Not Found\n",
            ['Content-Type' => self::TEXT, 'Content-Length' => '10'],
        ];
    }

    /** @param array<string, string|list<string>> $fields */
    #[DataProvider('gets')]
    public function testItAnswers(string $what, string $status, string $body, array $fields): void
    {
        [$method, $target] = explode(' ', $what) + [1 => '/'];

        self::assertAnswer($status, $body, $fields, $this->ask($method, $target));
    }

    public function testAHandlerMaySetTheDateButNoFieldSetsTheStatus(): void
    {
        $answer = $this->ask('GET', '/date');

        self::assertSame(
            [200, ['Sun, 06 Nov 1994 08:49:37 GMT'], 'old'],
            [$answer->getStatusCode(), $answer->getHeader('Date'), (string) $answer->getBody()],
        );
    }

    public function testAGeneratorRunsToItsEndBehindTheLastByte(): void
    {
        $file = sys_get_temp_dir() . '/spindle-finishes-' . bin2hex(random_bytes(8));
        self::assertSame('whole', (string) $this->ask('GET', "/finishes?{$file}")->getBody());

        Eventually::holds(static fn(): bool => file_exists($file), 'what follows the last yield has run');
        unlink($file);
    }

    public function testBackgroundWorkContinuesAfterTheAnswer(): void
    {
        $file = sys_get_temp_dir() . '/spindle-background-' . bin2hex(random_bytes(8));
        self::assertSame('answered', (string) $this->ask('GET', "/background?{$file}")->getBody());

        Eventually::holds(static fn(): bool => file_exists($file), 'the work is done');
        unlink($file);
    }

    public function testAFileIsAnsweredInPart(): void
    {
        $fields = [
            'Content-Type' => 'text/plain; charset=utf-8',
            'ETag' => '"d"',
            'Last-Modified' => 'Sun, 06 Nov 1994 08:49:37 GMT',
            'Accept-Ranges' => 'bytes',
        ];

        self::assertAnswer('200 OK', '0123456789', $fields + ['Content-Length' => '10'], $this->ask('GET', '/file'));
        self::assertAnswer('200 OK', '', $fields + ['Content-Length' => '10'], $this->ask('HEAD', '/file'));
        self::assertAnswer(
            '206 Partial Content',
            '3456',
            $fields + ['Content-Length' => '4', 'Content-Range' => 'bytes 3-6/10'],
            $this->ask('GET', '/file', ['Range' => 'bytes=3-6']),
        );
        $unchanged = $this->ask('GET', '/file', ['If-None-Match' => '"d"']);
        self::assertSame(
            [304, '', '"d"'],
            [$unchanged->getStatusCode(), (string) $unchanged->getBody(), $unchanged->getHeaderLine('ETag')],
        );
    }

    public function testARequestArrivesAsItWasSent(): void
    {
        $answer = $this->ask(
            'POST',
            '/request?a%5B%5D=1&a[]=%20&b=c+d',
            ['X-Some' => 'one, two', 'X-Empty' => '', 'Cookie' => 'a=1; b=%20+', 'Content-Type' => 'application/json'],
            '{"list":[1,{"k":null}]}',
        );

        self::assertSame([
            'method' => 'POST',
            'target' => '/request?a%5B%5D=1&a[]=%20&b=c+d',
            'path' => '/request',
            'query' => ['a' => ['1', ' '], 'b' => 'c d'],
            'scheme' => 'http',
            'cookies' => ['a' => '1', 'b' => ' +'],
            'x' => ['one, two'],
            'empty' => [''],
            'type' => 'application/json',
            'left' => false,
            'client' => '127.0.0.1',
            'body' => ['list' => [1, ['k' => null]]],
        ], json_decode((string) $answer->getBody(), true));
    }

    #[TestWith(['localhost/admin?'])]
    #[TestWith(['x?'])]
    public function testAHostThatWouldReplaceThePathIsRefused(string $host): void
    {
        self::assertSame(400, $this->ask('GET', '/text', ['Host' => $host])->getStatusCode());
    }

    public function testABodyIsReadWhole(): void
    {
        $body = random_bytes(300_000);

        $answer = $this->ask('PUT', '/echo', ['Content-Type' => self::BYTES], $body);

        self::assertSame(md5($body), md5((string) $answer->getBody()));
    }

    /** @return iterable<string, array{string, string, array<string, string>}> type, body, fields */
    public static function texts(): iterable
    {
        yield 'JSON' => ['application/json', '{"a": "ü"}', ['a' => 'ü']];
        yield 'urlencoded' => ['application/x-www-form-urlencoded', 'a=%C3%BC', ['a' => 'ü']];
    }

    /** @param array<string, string> $fields */
    #[DataProvider('texts')]
    public function testAParsedBodyCanBeReadAgain(string $type, string $body, array $fields): void
    {
        foreach (['POST', 'PUT'] as $method) {
            $again = $this->ask($method, '/again', ['Content-Type' => $type], $body);
            self::assertSame([$fields, $body, $body, $body, ''], json_decode((string) $again->getBody(), true));
            $late = $this->ask($method, '/parsed-late', ['Content-Type' => $type], $body);
            self::assertSame([$body, $fields, $body], json_decode((string) $late->getBody(), true));
            $resource = $this->ask($method, '/resource', ['Content-Type' => $type], $body);
            self::assertSame([$fields, $body], json_decode((string) $resource->getBody(), true));
        }
    }

    public function testABodyThatIsNotParsedCanBeReadAgain(): void
    {
        $answer = $this->ask('POST', '/again', ['Content-Type' => 'text/xml'], '<a/>');

        self::assertSame([null, '<a/>', '<a/>', '<a/>', ''], json_decode((string) $answer->getBody(), true));
    }

    #[TestWith(['POST'])]
    #[TestWith(['PUT'])]
    #[TestWith(['PATCH'])]
    public function testThereIsNothingInTheBodyOfAFormInParts(string $method): void
    {
        $form = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B--\r\n";
        $answer = $this->ask($method, '/again', ['Content-Type' => 'multipart/form-data; boundary=B'], $form);

        self::assertSame([['a' => '1'], '', '', '', ''], json_decode((string) $answer->getBody(), true));
        $rewound = $this->ask($method, '/rewound', ['Content-Type' => 'multipart/form-data; boundary=B'], $form);
        self::assertSame([['a' => '1'], '', 0, '', 0, true], json_decode((string) $rewound->getBody(), true));
    }

    public function testABodyWithAContentEncodingIsNotParsed(): void
    {
        $body = (string) gzencode('{"a":1}');
        foreach (['application/json', 'application/x-www-form-urlencoded'] as $type) {
            $answer = $this->ask('POST', '/encoded', ['Content-Type' => $type, 'Content-Encoding' => 'gzip'], $body);
            self::assertSame([415, base64_encode($body)], json_decode((string) $answer->getBody(), true));
        }
        $form = $this->ask(
            'POST',
            '/fields',
            ['Content-Type' => 'multipart/form-data; boundary=B', 'Content-Encoding' => 'gzip'],
            $body,
        );
        self::assertSame([415, 'identity'], [$form->getStatusCode(), $form->getHeaderLine('Accept-Encoding')]);
    }

    public function testAFormHasNestedFields(): void
    {
        $answer = $this->ask(
            'POST',
            '/form',
            ['Content-Type' => 'application/x-www-form-urlencoded'],
            'a=1&b[x][]=2&b[x][]=3&c.d=%C3%BC',
        );

        self::assertSame(
            ['fields' => ['a' => '1', 'b' => ['x' => ['2', '3']], 'c_d' => 'ü'], 'files' => []],
            json_decode((string) $answer->getBody(), true),
        );
    }

    #[TestWith(['POST'])]
    #[TestWith(['PUT'])]
    #[TestWith(['PATCH'])]
    public function testAFormHasFiles(string $method): void
    {
        $parts = [
            'Content-Disposition: form-data; name="title"' => 'A title',
            "Content-Disposition: form-data; name=\"files[one][]\"; filename=\"../dir\\a.txt\"\r\n"
                . 'Content-Type: text/plain; charset=x' => "first\r\nfile",
            'Content-Disposition: form-data; name="files[one][]"; filename=""' => '',
            "Content-Disposition: form-data; name=\"big\"; filename=\"b.bin\"\r\n"
                . 'Content-Type: application/octet-stream' => str_repeat('b', 100_000),
        ];
        $body = '';
        foreach ($parts as $head => $content) {
            $body .= "--xyz\r\n{$head}\r\n\r\n{$content}\r\n";
        }

        $answer = $this->ask(
            $method,
            '/form',
            ['Content-Type' => 'multipart/form-data; boundary=xyz'],
            "{$body}--xyz--\r\n",
        );

        self::assertSame([
            'fields' => ['title' => 'A title'],
            'files' => [
                'files' => ['one' => [
                    [
                        'name' => 'a.txt',
                        'type' => 'text/plain',
                        'size' => 11,
                        'error' => 0,
                        'contents' => "first\r\nfile",
                    ],
                    ['name' => null, 'type' => null, 'size' => 0, 'error' => 4, 'contents' => null],
                ]],
                'big' => [
                    'name' => 'b.bin',
                    'type' => 'application/octet-stream',
                    'size' => 100_000,
                    'error' => 0,
                    'contents' => str_repeat('b', 100_000),
                ],
            ],
        ], json_decode((string) $answer->getBody(), true));
    }

    /** @return iterable<string, array{string, string, int, string}> */
    public static function parts(): iterable
    {
        $field = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
        $file = "--B\r\nContent-Disposition: form-data; name=a[]; filename=b\r\n\r\nfile\r\n";
        yield 'a field' => ['multipart/form-data; boundary=B', "{$field}--B--\r\n", 200, '{"a":"1"}'];
        $nameless = static fn(string $name): string
            => "--B\r\nContent-Disposition: form-data; name={$name}\r\n\r\n2\r\n";
        yield 'a field with an empty name' => [
            'multipart/form-data; boundary=B',
            "{$nameless('""')}{$field}{$nameless('')}--B--\r\n",
            200,
            '{"a":"1"}',
        ];
        yield 'a file with an empty name' => [
            'multipart/form-data; boundary=B',
            "{$nameless('""; filename=b')}{$field}{$nameless('; filename=b')}--B--\r\n",
            200,
            '{"a":"1"}',
        ];
        yield 'no field' => ['multipart/form-data; boundary=B', "--B--\r\n", 200, '[]'];
        yield 'no body' => ['multipart/form-data; boundary=B', '', 400, ''];
        yield 'other parts' => ['multipart/mixed; boundary=B', "{$field}--B--\r\n", 200, 'null'];
        yield 'no boundary' => ['multipart/form-data', "{$field}--B--\r\n", 400, ''];
        yield 'another boundary' => ['multipart/form-data; boundary=C', "{$field}--B--\r\n", 400, ''];
        yield 'a part without an end' => ['multipart/form-data; boundary=B', "--B\r\ngarbage", 400, ''];
        yield 'a part without a name' => [
            'multipart/form-data; boundary=B',
            "{$field}--B\r\nContent-Disposition: form-data\r\n\r\n2\r\n--B--\r\n",
            400,
            '',
        ];
        yield 'a file without an end' => ['multipart/form-data; boundary=B', $field . substr($file, 0, -3), 400, ''];
        yield 'many files' => [
            'multipart/form-data; boundary=B',
            $field . str_repeat($file, 21) . "--B--\r\n",
            413,
            '',
        ];
        yield 'many fields' => ['multipart/form-data; boundary=B', str_repeat($field, 1100) . "--B--\r\n", 413, ''];
        yield 'many brackets' => [
            'multipart/form-data; boundary=B',
            str_replace('name=a', 'name="a' . str_repeat('[x]', 65) . '"', $field) . "--B--\r\n",
            413,
            '',
        ];
    }

    #[DataProvider('parts')]
    public function testAFormInPartsIsWholeOrRefused(string $type, string $body, int $status, string $fields): void
    {
        foreach (['POST', 'PUT'] as $method) {
            $answer = $this->ask(
                $method,
                '/fields',
                ['Content-Type' => $type, 'Content-Length' => (string) \strlen($body)],
                $body,
            );

            self::assertSame(
                [$status, $status === 200 ? $fields : ''],
                [$answer->getStatusCode(), $status === 200 ? (string) $answer->getBody() : ''],
                $method,
            );
        }
    }

    public function testABodyThatIsShorterThanAnnouncedIsNotComplete(): void
    {
        $this->expectException(\UnexpectedValueException::class);
        $this->expectExceptionMessage('The response ended after 12 bytes of its body');

        $this->ask('GET', '/short');
    }

    public function testAFormThatIsRefusedIsRefusedAgain(): void
    {
        $answer = $this->ask(
            'POST',
            '/twice',
            ['Content-Type' => 'application/x-www-form-urlencoded'],
            str_repeat('a', 1_200_000) . '&b=1',
        );

        self::assertSame([413, 413], json_decode((string) $answer->getBody(), true));
    }

    public function testWhatIsMalformedOrTooMuchIsRefused(): void
    {
        $json = $this->ask('POST', '/form', ['Content-Type' => 'application/json'], '{');
        $large = $this->ask('POST', '/small', [], 'more than ten bytes');
        $members = implode(',', array_map(static fn(int $i): string => '"' . $i * 65_536 . '":0', range(1, 2_001)));
        $colliding = $this->ask('POST', '/form', ['Content-Type' => 'application/json'], "{{$members}}");

        self::assertSame(
            [400, 413, 413],
            [$json->getStatusCode(), $large->getStatusCode(), $colliding->getStatusCode()],
        );
    }

    /** @param array<string, string|list<string>> $headers */
    abstract protected function ask(string $method, string $target, array $headers = [], string $body = ''): Response;

    /** @param array<string, string|list<string>> $fields */
    protected static function assertAnswer(string $status, string $body, array $fields, Response $answer): void
    {
        $expected = array_map(static fn(string|array $values): array => (array) $values, $fields);
        $actual = array_diff_key($answer->getHeaders(), self::SERVERS_OWN);
        ksort($expected);
        ksort($actual);

        self::assertSame(
            ['status' => $status, 'fields' => $expected, 'body' => bin2hex($body)],
            [
                'status' => "{$answer->getStatusCode()} {$answer->getReasonPhrase()}",
                'fields' => $actual,
                'body' => bin2hex((string) $answer->getBody()),
            ],
        );
    }
}
