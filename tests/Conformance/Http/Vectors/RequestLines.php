<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 2.2 and 3. */
final class RequestLines
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a plain request is accepted' => Vector::accepted("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 'GET / "" kept');
        yield 'any token is a method' => Vector::accepted(
            "!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\nHost: a\r\n\r\n",
            "!#$%&'*+-.^_`|~09azAZ / \"\" kept",
        );
        yield 'methods differ by case' => Vector::accepted(
            "get / HTTP/1.1\r\nHost: a\r\n\r\n",
            'get / "" kept',
        );
        yield 'TRACE is left to the handler' => Vector::accepted(
            "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
            'TRACE / "" kept',
        );
        yield 'one empty line before a request is skipped' => Vector::accepted(
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET / "" kept',
        );
        yield 'some empty lines before a request are skipped' => Vector::accepted(
            "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an empty line of LF alone before a request is refused' => Vector::refused(
            400,
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'CR before a request is refused' => Vector::refused(400, "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'two CR in an empty line before a request are refused' => Vector::refused(
            400,
            "\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a blank in an empty line before a request is refused' => Vector::refused(
            400,
            " \r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a blank before the method is refused' => Vector::refused(400, " GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a tab before the method is refused' => Vector::refused(400, "\tGET / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'NUL before the method is refused' => Vector::refused(400, "\0GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a byte order mark before the method is refused' => Vector::refused(
            400,
            "\xEF\xBB\xBFGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'no method is refused' => Vector::refused(400, " / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a colon in the method is refused' => Vector::refused(400, "GET: / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a parenthesis in the method is refused' => Vector::refused(400, "G(T / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a quoted method is refused' => Vector::refused(400, "\"GET\" / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a slash in the method is refused' => Vector::refused(400, "GE/T / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'NUL in the method is refused' => Vector::refused(400, "GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'letters beyond ASCII in the method are refused' => Vector::refused(
            400,
            "G\u{C9}T / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'two blanks before the target are refused' => Vector::refused(400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'two blanks after the target are refused' => Vector::refused(400, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a tab before the target is refused' => Vector::refused(400, "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a tab after the target is refused' => Vector::refused(400, "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a vertical tab before the target is refused' => Vector::refused(
            400,
            "GET\x0B/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a form feed after the target is refused' => Vector::refused(400, "GET /\x0CHTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a blank that does not break, before the target, is refused' => Vector::refused(
            400,
            "GET\xA0/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'CR before the target is refused' => Vector::refused(400, "GET\r/ HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'CR after the target is refused' => Vector::refused(400, "GET /\rHTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a line end before the target is refused' => Vector::refused(400, "GET\r\n/ HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a line end after the target is refused' => Vector::refused(400, "GET /\r\nHTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a blank after the version is refused' => Vector::refused(400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n");
        yield 'a tab after the version is refused' => Vector::refused(400, "GET / HTTP/1.1\t\r\nHost: a\r\n\r\n");
        yield 'a word after the version is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1 HTTP/1.0\r\nHost: a\r\n\r\n",
        );
        yield 'LF alone after the version is refused' => Vector::refused(400, "GET / HTTP/1.1\nHost: a\r\n\r\n");
        yield 'CR alone after the version is refused' => Vector::refused(400, "GET / HTTP/1.1\rHost: a\r\n\r\n");
        yield 'two CR after the version are refused' => Vector::refused(400, "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n");
        yield 'CR after LF is refused' => Vector::refused(400, "GET / HTTP/1.1\n\rHost: a\n\r\n\r");
        yield 'a line with the method alone is refused' => Vector::refused(400, "GET\r\nHost: a\r\n\r\n");
        yield 'a header line without a request line is refused' => Vector::refused(400, "Host: a\r\n\r\n");
        yield 'a status line is refused' => Vector::refused(400, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        yield 'an address given by a proxy is refused' => Vector::refused(
            400,
            "PROXY TCP4 192.0.2.1 192.0.2.2 4096 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'the greeting of SSH is refused' => Vector::refused(400, "SSH-2.0-OpenSSH_9.2\r\n");
        yield 'a greeting of TLS is refused where it has LF' => Vector::refused(
            400,
            "\x16\x03\x01\x00\xA5\x01\x00\x00\xA1\x03\x03\n",
        );
        yield 'a command of SMTP is refused' => Vector::refused(400, "EHLO example.com\r\n");
        yield 'CONNECT is not served' => Vector::refused(
            501,
            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
        );
        yield 'CONNECT to a path is not served' => Vector::refused(501, "CONNECT /x HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a request line without its end is waited for' => Vector::incomplete('GET / HTTP/1.1');
        yield 'a request line with half of its end is waited for' => Vector::incomplete("GET / HTTP/1.1\r");
        yield 'an empty line alone is no request' => Vector::accepted("\r\n");
        yield 'two empty lines alone are none either' => Vector::incomplete("\r\n\r\n");
    }
}
