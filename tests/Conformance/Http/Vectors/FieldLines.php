<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 5, and RFC 9110, 5. */
final class FieldLines
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'any token is the name of a field' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~09azAZ: b\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an empty value is accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a value of blanks is accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nX: \t \r\n\r\n",
            'GET / "" kept',
        );
        yield 'tabs in a value are accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\tc\r\n\r\n",
            'GET / "" kept',
        );
        yield 'bytes beyond ASCII in a value are accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nX: \u{E9}\xFF\x80\r\n\r\n",
            'GET / "" kept',
        );
        yield 'colons in a value are accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nX:: :b: \r\n\r\n",
            'GET / "" kept',
        );
        yield 'the same field twice is accepted where nothing hangs on it' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\nX: c\r\n\r\n",
            'GET / "" kept',
        );
        yield 'fields that begin like those of the frame are accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nHost-X: b\r\nContent-Type: c\r\nTE: d\r\nE: f\r\nUpgrade: g\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an upgrade is not offered and asked for in vain' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                . "Upgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a blank before a colon is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n");
        yield 'a tab before a colon is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n");
        yield 'a blank in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n");
        yield 'a line without a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n");
        yield 'a line of a colon is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\n:\r\n\r\n");
        yield 'a line without a colon is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n");
        yield 'a second request line among the fields is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a value that goes on after a blank is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
        );
        yield 'a value that goes on after a tab is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n",
        );
        yield 'a line of a blank is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n");
        yield 'a blank before the first field is refused' => Vector::refused(400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n");
        yield 'a tab before the first field is refused' => Vector::refused(400, "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n");
        yield 'a parenthesis in a name is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX(Y: b\r\n\r\n",
        );
        yield 'a slash in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX/Y: b\r\n\r\n");
        yield 'a comma in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX,Y: b\r\n\r\n");
        yield 'a quote in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\n\"X\": b\r\n\r\n");
        yield 'a bracket in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX[]: b\r\n\r\n");
        yield 'an equals sign in a name is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nX=Y: b\r\n\r\n",
        );
        yield 'an at sign in a name is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX@Y: b\r\n\r\n");
        yield 'letters beyond ASCII in a name are refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\n\u{E9}: b\r\n\r\n",
        );
        $incomplete = "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n";
        yield 'a head that ends in the middle of its fields is waited for' => Vector::incomplete($incomplete);
        yield 'a head without the LF at its end is waited for' => Vector::incomplete("GET / HTTP/1.1\r\nHost: a\r\n\r");
    }
}
