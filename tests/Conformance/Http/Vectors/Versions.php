<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 2.3, and RFC 9110, 2.5. */
final class Versions
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'HTTP/1.0 is spoken' => Vector::accepted("GET / HTTP/1.0\r\n\r\n", 'GET / "" closed');
        yield 'a higher minor version is taken for the highest known' => Vector::accepted(
            "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
            'GET / "" kept',
        );
        yield 'the highest minor version needs a Host too' => Vector::refused(400, "GET / HTTP/1.9\r\n\r\n");
        yield 'HTTP/2 is not spoken' => Vector::refused(505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n");
        yield 'HTTP/3 is not spoken' => Vector::refused(505, "GET / HTTP/3.0\r\nHost: a\r\n\r\n");
        yield 'HTTP/0.9 is not spoken' => Vector::refused(505, "GET / HTTP/0.9\r\nHost: a\r\n\r\n");
        yield 'the preface of HTTP/2 is refused as what it is' => Vector::refused(
            505,
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        );
        yield 'a request of HTTP/0.9 is refused' => Vector::refused(400, "GET /\r\n");
        yield 'the name of the protocol has no small letters' => Vector::refused(
            400,
            "GET / http/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a version without minor is refused' => Vector::refused(400, "GET / HTTP/1\r\nHost: a\r\n\r\n");
        yield 'a version without a minor after its dot is refused' => Vector::refused(
            400,
            "GET / HTTP/1.\r\nHost: a\r\n\r\n",
        );
        yield 'a version without a major is refused' => Vector::refused(400, "GET / HTTP/.1\r\nHost: a\r\n\r\n");
        yield 'a version without a number is refused' => Vector::refused(400, "GET / HTTP\r\nHost: a\r\n\r\n");
        yield 'a zero before the major version is refused' => Vector::refused(
            400,
            "GET / HTTP/01.1\r\nHost: a\r\n\r\n",
        );
        yield 'a zero before the minor version is refused' => Vector::refused(
            400,
            "GET / HTTP/1.01\r\nHost: a\r\n\r\n",
        );
        yield 'a minor version of two digits is refused' => Vector::refused(400, "GET / HTTP/1.10\r\nHost: a\r\n\r\n");
        yield 'a major version of two digits is refused' => Vector::refused(400, "GET / HTTP/11.1\r\nHost: a\r\n\r\n");
        yield 'a version of three numbers is refused' => Vector::refused(400, "GET / HTTP/1.1.1\r\nHost: a\r\n\r\n");
        yield 'a version with a comma is refused' => Vector::refused(400, "GET / HTTP/1,1\r\nHost: a\r\n\r\n");
        yield 'a version with a sign is refused' => Vector::refused(400, "GET / HTTP/+1.1\r\nHost: a\r\n\r\n");
        yield 'a blank in the version is refused' => Vector::refused(400, "GET / HTTP/1. 1\r\nHost: a\r\n\r\n");
        yield 'a blank before the slash of the version is refused' => Vector::refused(
            400,
            "GET / HTTP /1.1\r\nHost: a\r\n\r\n",
        );
        yield 'digits of another alphabet are no version' => Vector::refused(
            400,
            "GET / HTTP/1.\u{661}\r\nHost: a\r\n\r\n",
        );
        yield 'a letter for a version is refused' => Vector::refused(400, "GET / HTTP/x.y\r\nHost: a\r\n\r\n");
        yield 'another protocol is refused' => Vector::refused(400, "GET / RTSP/1.0\r\nHost: a\r\n\r\n");
        yield 'a protocol whose name begins with HTTP is refused' => Vector::refused(
            400,
            "GET / HTTPS/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a protocol whose name ends with HTTP is refused' => Vector::refused(
            400,
            "GET / XHTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'NUL in the version is refused' => Vector::refused(400, "GET / HTTP/1.1\0\r\nHost: a\r\n\r\n");
    }
}
