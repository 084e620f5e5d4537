<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 9.3, and RFC 9110, 7.6.1. */
final class Connections
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a connection of HTTP/1.1 is kept' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a connection of HTTP/1.1 that asks for it is kept' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a connection of HTTP/1.1 is closed when the client asks for it' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            'GET / "" closed',
        );
        yield 'the case of an option does not matter' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nCONNECTION: Close\r\n\r\n",
            'GET / "" closed',
        );
        yield 'an option in a list is seen' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: TE ,\tclose\t, X\r\nTE: trailers\r\n\r\n",
            'GET / "" closed',
        );
        yield 'an option in a second line is seen' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nConnection: close\r\n\r\n",
            'GET / "" closed',
        );
        yield 'empty members of a list are nothing' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: ,,close,\r\n\r\n",
            'GET / "" closed',
        );
        yield 'closing goes before keeping' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n",
            'GET / "" closed',
        );
        yield 'closing goes before keeping in another line' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
            'GET / "" closed',
        );
        yield 'an option that only ends like another is none' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: xclose\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an option in quotes is none' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: \"close\"\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an empty list of options is accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection:\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a field for proxies says nothing' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nProxy-Connection: close\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a length named as an option is a length' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'a connection of HTTP/1.0 is closed' => Vector::accepted(
            "GET / HTTP/1.0\r\nHost: a\r\nConnection: x\r\n\r\n",
            'GET / "" closed',
        );
        yield 'a connection of HTTP/1.0 is kept when the client asks' => Vector::accepted(
            "GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n",
            'GET / "" kept',
        );
        yield 'closing goes before keeping in HTTP/1.0 too' => Vector::accepted(
            "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n",
            'GET / "" closed',
        );
        yield 'a blank before the colon of the options is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection : close\r\n\r\n",
        );
    }
}
