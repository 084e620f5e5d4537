<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

use Spindle\Http\Internal\Message\MessageLimits;

/** Too long messages: the status depends on the exceeded limit, and not on how the bytes are split. */
final class Limits
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        $chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
        $tight = new MessageLimits(target: 8, head: 100, fields: 3);
        foreach ([
            'the longest target is accepted' => Vector::accepted(
                "GET /2345678 HTTP/1.1\r\nHost: a\r\n\r\n",
                'GET /2345678 "" kept',
            ),
            'a longer target is refused' => Vector::refused(414, "GET /23456789 HTTP/1.1\r\nHost: a\r\n\r\n"),
            'a longer target of HTTP/1.0 is refused' => Vector::refused(414, "GET /23456789 HTTP/1.0\r\n\r\n"),
            'a longer target in absolute form is refused' => Vector::refused(
                414,
                "GET http://abc HTTP/1.1\r\nHost: abc\r\n\r\n",
            ),
            'a target too long for CONNECT is too long' => Vector::refused(
                414,
                "CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n",
            ),
            'a target too long for another version has another version' => Vector::refused(
                505,
                "GET /23456789 HTTP/2.0\r\nHost: a\r\n\r\n",
            ),
            'a method of which the request line gets too long is refused' => Vector::refused(
                414,
                str_repeat('M', 64) . " / HTTP/1.1\r\nHost: a\r\n\r\n",
            ),
            'the longest request line is accepted' => Vector::accepted(
                str_repeat('M', 61) . " / HTTP/1.1\r\nHost: a\r\n\r\n",
                str_repeat('M', 61) . ' / "" kept',
            ),
            'a request line without end is refused' => Vector::refused(414, 'GET /' . str_repeat('a', 80)),
            'bytes without a line are refused' => Vector::refused(414, str_repeat("\0", 80)),
            'as many fields as are allowed are accepted' => Vector::accepted(
                "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n",
                'GET / "" kept',
            ),
            'more fields are refused' => Vector::refused(
                431,
                "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nX: 3\r\n\r\n",
            ),
            'the longest head is accepted' => Vector::accepted(
                "GET / HTTP/1.1\r\nHost: a\r\nX:" . str_repeat('a', 69) . "\r\n\r\n",
                'GET / "" kept',
            ),
            'a longer head is refused' => Vector::refused(
                431,
                "GET / HTTP/1.1\r\nHost: a\r\nX:" . str_repeat('a', 70) . "\r\n\r\n",
            ),
            'a field line without end is refused' => Vector::refused(
                431,
                "GET / HTTP/1.1\r\nHost: a\r\nX: " . str_repeat('a', 80),
            ),
            'a head too long is refused before its last line is looked at' => Vector::refused(
                431,
                "GET / HTTP/1.1\r\nHost: a\r\nX : " . str_repeat('a', 70) . "\r\n",
            ),
            'what is malformed before a head is too long is malformed' => Vector::refused(
                400,
                "GET / HTTP/1.1\r\nX : a\r\nX: " . str_repeat('a', 80) . "\r\n",
            ),
            'empty lines count as the head that they come before' => Vector::refused(431, str_repeat("\r\n", 51)),
            'a request line passes the limit first that is nearer' => Vector::refused(
                431,
                str_repeat("\r\n", 20) . 'GET /' . str_repeat('a', 100),
            ),
            'each head has its own limits' => Vector::accepted(
                str_repeat("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n", 4),
                ...array_fill(0, 4, 'GET / "" kept'),
            ),
            'a body has none of the limits of a head' => Vector::accepted(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\n" . str_repeat('a', 200),
                'POST / "' . str_repeat('a', 200) . '" kept',
            ),
            'as many trailer fields as are allowed are accepted' => Vector::accepted(
                "{$chunked}X: 1\r\nX: 2\r\nX: 3\r\n\r\n",
                'POST / "" kept',
            ),
            'more trailer fields are refused' => Vector::refused(431, "{$chunked}X: 1\r\nX: 2\r\nX: 3\r\nX: 4\r\n\r\n"),
            'the longest trailer section is accepted' => Vector::accepted(
                "{$chunked}X:" . str_repeat('a', 94) . "\r\n\r\n",
                'POST / "" kept',
            ),
            'a longer trailer section is refused' => Vector::refused(
                431,
                "{$chunked}X:" . str_repeat('a', 95) . "\r\n\r\n",
            ),
            'a longer trailer section in several fields is refused' => Vector::refused(
                431,
                "{$chunked}X:" . str_repeat('a', 50) . "\r\nX:" . str_repeat('a', 50) . "\r\n\r\n",
            ),
            'a trailer field without end is refused' => Vector::refused(431, "{$chunked}X: " . str_repeat('a', 100)),
        ] as $name => $vector) {
            yield $name => $vector->within($tight);
        }
    }
}
