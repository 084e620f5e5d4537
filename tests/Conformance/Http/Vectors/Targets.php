<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 3.2. */
final class Targets
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a path with a query is accepted' => Vector::accepted(
            "GET /a/b;c=d/?e=f&g=%20%C3%A9+? HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET /a/b;c=d/?e=f&g=%20%C3%A9+? "" kept',
        );
        yield 'a path that begins with two slashes is a path' => Vector::accepted(
            "GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET //b/c "" kept',
        );
        yield 'dots in a path are left as they are' => Vector::accepted(
            "GET /a/../b/./c HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET /a/../b/./c "" kept',
        );
        yield 'what every browser sends in a query is accepted' => Vector::accepted(
            "GET /?a[]={\"b\"}|^`\\<> HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET /?a[]={"b"}|^`\<> "" kept',
        );
        yield 'an absolute target is accepted' => Vector::accepted(
            "GET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET http://a/b?c "" kept',
        );
        yield 'an absolute target without a path is accepted' => Vector::accepted(
            "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET http://a "" kept',
        );
        yield 'an absolute target of a query alone is accepted' => Vector::accepted(
            "GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET http://a?b "" kept',
        );
        yield 'an absolute target with a port is accepted' => Vector::accepted(
            "GET https://a:8443/ HTTP/1.1\r\nHost: a:8443\r\n\r\n",
            'GET https://a:8443/ "" kept',
        );
        yield 'the case of a scheme does not matter' => Vector::accepted(
            "GET HTTP://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET HTTP://a/ "" kept',
        );
        yield 'an absolute target with an address of IPv6 is accepted' => Vector::accepted(
            "GET http://[::1]:80/ HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
            'GET http://[::1]:80/ "" kept',
        );
        yield 'OPTIONS of the server as a whole is accepted' => Vector::accepted(
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            'OPTIONS * "" kept',
        );
        yield 'OPTIONS of a path is accepted' => Vector::accepted(
            "OPTIONS /a HTTP/1.1\r\nHost: a\r\n\r\n",
            'OPTIONS /a "" kept',
        );
        yield 'only OPTIONS is for the server as a whole' => Vector::refused(400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'more than an asterisk is no target' => Vector::refused(400, "OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'no target is refused' => Vector::refused(400, "GET HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'an empty target is refused' => Vector::refused(400, "GET  HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a path without a slash is refused' => Vector::refused(400, "GET a HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a path that begins with dots is refused' => Vector::refused(400, "GET ../a HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a query alone is refused' => Vector::refused(400, "GET ?a HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a backslash instead of a slash is refused' => Vector::refused(
            400,
            "GET \\a HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a fragment is refused' => Vector::refused(400, "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a fragment of an absolute target is refused' => Vector::refused(
            400,
            "GET http://a/#b HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a host and port are a target for CONNECT alone' => Vector::refused(
            400,
            "GET a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        );
        yield 'another scheme is refused' => Vector::refused(400, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a scheme without slashes is refused' => Vector::refused(400, "GET http:a/ HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a scheme with one slash is refused' => Vector::refused(400, "GET http:/a/ HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'an absolute target without a host is refused' => Vector::refused(
            400,
            "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'an absolute target of nothing but its scheme is refused' => Vector::refused(
            400,
            "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'an absolute target of a port without a host is refused' => Vector::refused(
            400,
            "GET http://:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a name and password in an absolute target are refused' => Vector::refused(
            400,
            "GET http://b:c@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a port that is no number is refused' => Vector::refused(
            400,
            "GET http://a:b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'an open bracket in an absolute target is refused' => Vector::refused(
            400,
            "GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'an absolute target with an address of IPv6 of three groups is refused' => Vector::refused(
            400,
            "GET http://[1:2:3]/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a backslash in the host of an absolute target is refused' => Vector::refused(
            400,
            "GET http://a\\b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a blank in a path is refused' => Vector::refused(400, "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a tab in a path is refused' => Vector::refused(400, "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'NUL in a path is refused' => Vector::refused(400, "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'CR in a path is refused' => Vector::refused(400, "GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'a control byte in a path is refused' => Vector::refused(400, "GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'DEL in a path is refused' => Vector::refused(400, "GET /a\x7Fb HTTP/1.1\r\nHost: a\r\n\r\n");
        yield 'letters beyond ASCII in a path are refused' => Vector::refused(
            400,
            "GET /\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n",
        );
    }
}
