<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9110, 8.6, and RFC 9112, 6.3. */
final class Lengths
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a body ends where its length says' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'a length of nothing is accepted' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            'POST / "" kept',
        );
        yield 'no length is a length of nothing' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
            'POST / "" kept',
        );
        yield 'zeros before a length say nothing' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 005\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'blanks around a length are none of it' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \t5 \t\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'no blank is needed before a length' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\ncontent-length:5\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'GET may have a body' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
            'GET / "hello" kept',
        );
        yield 'HTTP/1.0 may have a body' => Vector::accepted(
            "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" closed',
        );
        yield 'a body holds any bytes' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n\r\n\r\n\0\xFF\"\\\n",
            'POST / "\r\n\r\n\000\377\"\\\\\n" kept',
        );
        yield 'a length with an underscore in its name is a field like others' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\n\r\n",
            'POST / "" kept',
        );
        yield 'a length whose name only ends so is a field like others' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nX-Content-Length: 5\r\n\r\n",
            'POST / "" kept',
        );
        yield 'two lengths are refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        );
        yield 'two equal lengths are refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'two lengths in different letters are refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nAccept: */*\r\ncontent-length: 5\r\n\r\nhello",
        );
        yield 'two lengths of nothing are refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 00\r\n\r\n",
        );
        yield 'two lengths in HTTP/1.0 are refused' => Vector::refused(
            400,
            "POST / HTTP/1.0\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        );
        yield 'a list of lengths is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\nhello!",
        );
        yield 'a list of equal lengths is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,5\r\n\r\nhello",
        );
        yield 'a list of one length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,\r\n\r\nhello",
        );
        yield 'an empty length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        );
        yield 'a length of blanks is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \t \r\n\r\n",
        );
        yield 'a length below zero is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello",
        );
        yield 'a length below zero by nothing is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -0\r\n\r\n",
        );
        yield 'a plus before a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
        );
        yield 'a hexadecimal length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello",
        );
        yield 'a length of letters is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: a\r\n\r\nhello67890",
        );
        yield 'an octal length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0o5\r\n\r\nhello",
        );
        yield 'a length with an underscore is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1_0\r\n\r\nhello67890",
        );
        yield 'a length with a blank in it is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 0\r\n\r\nhello67890",
        );
        yield 'a length with a point is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\nhello",
        );
        yield 'a length with an exponent is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5e0\r\n\r\nhello",
        );
        yield 'a length with a unit is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5b\r\n\r\nhello",
        );
        yield 'a length with a parameter is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5;a=b\r\n\r\nhello",
        );
        yield 'a quoted length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \"5\"\r\n\r\nhello",
        );
        yield 'a length after another colon is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:: 5\r\n\r\nhello",
        );
        yield 'Arabic digits are no length' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \u{665}\r\n\r\nhello",
        );
        yield 'wide digits are no length' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \u{FF15}\r\n\r\nhello",
        );
        yield 'a superscript is no length' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\xB2\r\n\r\nhello",
        );
        yield 'a length beyond 64 bits is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\nhello",
        );
        yield 'a length beyond 63 bits is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\nhello",
        );
        yield 'a length of many zeros is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0000000000000000005\r\n\r\nhello",
        );
        yield 'a vertical tab after a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\x0B\r\n\r\nhello",
        );
        yield 'a form feed before a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\x0C5\r\n\r\nhello",
        );
        yield 'a blank that does not break, after a length, is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\xA0\r\n\r\nhello",
        );
        yield 'NUL after a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\0\r\n\r\nhello",
        );
        yield 'CR after a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\r\n\r\nhello",
        );
        yield 'a length on the next line is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 5\r\n\r\nhello",
        );
        yield 'a length that goes on on the next line is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n 0\r\n\r\nhello67890",
        );
        yield 'a blank before the colon of a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello",
        );
        yield 'a tab before the colon of a length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5\r\n\r\nhello",
        );
        yield 'a body that is not whole is waited for' => Vector::incomplete(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell",
        );
    }
}
