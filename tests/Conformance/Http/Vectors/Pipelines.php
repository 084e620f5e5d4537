<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 9.3.2. */
final class Pipelines
{
    private const GET = "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n";

    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        [$a, $b] = [\sprintf(self::GET, 'a'), \sprintf(self::GET, 'b')];
        $post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
        $chunks = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

        yield 'requests follow each other' => Vector::accepted(
            $a . $b . $a,
            'GET /a "" kept',
            'GET /b "" kept',
            'GET /a "" kept',
        );
        yield 'a request follows a body' => Vector::accepted(
            $post . $a . $post,
            'POST / "hello" kept',
            'GET /a "" kept',
            'POST / "hello" kept',
        );
        yield 'a request follows chunks' => Vector::accepted(
            $chunks . $a . $chunks,
            'POST / "hello" kept',
            'GET /a "" kept',
            'POST / "hello" kept',
        );
        yield 'a request follows an empty line after a body' => Vector::accepted(
            "{$post}\r\n{$a}",
            'POST / "hello" kept',
            'GET /a "" kept',
        );
        yield 'a request in a body is a body' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\n\r\n{$a}{$b}",
            'POST / "GET /a HTTP/1.1\r\nHost: a\r\n\r\n" kept',
            'GET /b "" kept',
        );
        yield 'a request after one without a length is the next' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\n\r\n{$a}",
            'POST / "" kept',
            'GET /a "" kept',
        );
        yield 'HEAD is followed by the next' => Vector::accepted(
            "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n{$a}",
            'HEAD / "" kept',
            'GET /a "" kept',
        );
        yield 'requests of both versions follow each other' => Vector::accepted(
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n{$a}",
            'GET / "" kept',
            'GET /a "" kept',
        );
        yield 'nothing is read after the last request' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n{$a}",
            'GET / "" closed',
        );
        yield 'nothing is refused after the last request' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\0\n",
            'GET / "" closed',
        );
        yield 'the body of the last request is read' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello{$a}",
            'POST / "hello" closed',
        );
        yield 'a body longer than its length is refused' => Vector::refused(
            400,
            "{$post}world\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'a body of a request without a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\n\r\nhello\r\n",
            'POST / "" kept',
        );
        yield 'chunks of a request without a coding are refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            'POST / "" kept',
        );
        yield 'a body behind a length with an underscore in its name is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\n\r\nhello\r\n",
            'POST / "" kept',
        );
        yield 'a malformed request after others is refused' => Vector::refused(
            400,
            "{$a}{$b}GET / HTTP/1.1\r\n\r\n",
            'GET /a "" kept',
            'GET /b "" kept',
        );
        yield 'a malformed request after a body is refused' => Vector::refused(
            400,
            "{$post} {$a}",
            'POST / "hello" kept',
        );
        yield 'LF alone after a body is refused' => Vector::refused(400, "{$post}\n{$a}", 'POST / "hello" kept');
        yield 'NUL between requests is refused' => Vector::refused(400, "{$a}\0{$b}", 'GET /a "" kept');
        yield 'a malformed chunk after others is refused' => Vector::refused(
            400,
            $a . str_replace('0', 'x', $chunks),
            'GET /a "" kept',
        );
        yield 'a second Host is counted for each request' => Vector::refused(
            400,
            "{$a}GET /b HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            'GET /a "" kept',
        );
        yield 'the rest of a request is waited for' => Vector::incomplete($a . substr($b, 0, -1), 'GET /a "" kept');
        yield 'the rest of a body is waited for' => Vector::incomplete($a . substr($post, 0, -1), 'GET /a "" kept');
    }
}
