<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 2.2, and RFC 9110, 5.5. */
final class ControlBytes
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'NUL in a value is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n");
        yield 'NUL at the end of a value is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\0\r\n\r\n",
        );
        yield 'NUL in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX\0Y: b\r\n\r\n");
        yield 'NUL in a host is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n");
        yield 'CR in a value is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n");
        yield 'CR at the end of a value is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n",
        );
        yield 'CR before a value is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX:\rb\r\n\r\n");
        yield 'CR in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX\rY: b\r\n\r\n");
        yield 'CR before a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\n\rX: b\r\n\r\n");
        yield 'CR before a colon is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX\r: b\r\n\r\n");
        yield 'CR in a host is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n");
        yield 'CR alone between fields is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n");
        yield 'lines that end with CR alone are refused where LF comes' => Vector::refused(
            400,
            "GET / HTTP/1.1\rHost: a\r\r\n",
        );
        yield 'LF alone between fields is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n");
        yield 'LF alone after the last field is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\n\r\n");
        yield 'LF alone at the end of a head is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\n\n");
        yield 'two CR at the end of a head are refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n");
        yield 'a head of LF alone is refused' => Vector::refused(400, "GET / HTTP/1.1\nHost: a\n\n");
        yield 'a request behind LF alone is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\n\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a request behind CR alone is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\rGET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a vertical tab in a value is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\x0Bc\r\n\r\n",
        );
        yield 'a form feed in a value is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\x0Cc\r\n\r\n",
        );
        yield 'a bell in a value is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\x07c\r\n\r\n");
        yield 'ESC in a value is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX: \e[31m\r\n\r\n");
        yield 'DEL in a value is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\x7F\r\n\r\n");
        yield 'DEL in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX\x7F: b\r\n\r\n");
        yield 'NUL among the connection options is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\0\r\n\r\n",
        );
    }
}
