<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9110, 10.1.1. */
final class Expectations
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a client may wait before its body' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'the case of an expectation does not matter' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'a client may wait before chunks' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            'POST / "" kept',
        );
        yield 'an expectation without a body is accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an expectation of HTTP/1.0 is ignored' => Vector::accepted(
            "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" closed',
        );
        yield 'another expectation is refused' => Vector::refused(
            417,
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'another expectation beside the known one is refused' => Vector::refused(
            417,
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, x=y\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'another expectation in a line of its own is refused' => Vector::refused(
            417,
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: x\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'an empty expectation is refused' => Vector::refused(
            417,
            "POST / HTTP/1.1\r\nHost: a\r\nExpect:\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'an expectation with a parameter is refused' => Vector::refused(
            417,
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue;a=b\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'a blank before the colon of an expectation is malformed' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nExpect : 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        );
    }
}
