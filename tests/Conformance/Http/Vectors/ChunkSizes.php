<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 7.1. */
final class ChunkSizes
{
    private const HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a size in small letters is accepted' => Vector::accepted(
            self::HEAD . "a\r\nhello67890\r\n0\r\n\r\n",
            'POST / "hello67890" kept',
        );
        yield 'a size in capital letters is accepted' => Vector::accepted(
            self::HEAD . "A\r\nhello67890\r\n0\r\n\r\n",
            'POST / "hello67890" kept',
        );
        yield 'a size that looks like an exponent is accepted' => Vector::accepted(
            self::HEAD . "0e1\r\n" . str_repeat('x', 225) . "\r\n0\r\n\r\n",
            'POST / "' . str_repeat('x', 225) . '" kept',
        );
        yield 'zeros before a size are accepted up to fifteen digits' => Vector::accepted(
            self::HEAD . "000000000000005\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'zeros are the last size' => Vector::accepted(self::HEAD . "000\r\n\r\n", 'POST / "" kept');
        yield 'a body of no chunks is empty' => Vector::accepted(self::HEAD . "0\r\n\r\n", 'POST / "" kept');
        yield 'a size of sixteen digits is refused' => Vector::refused(
            400,
            self::HEAD . "0000000000000005\r\nhello\r\n0\r\n\r\n",
        );
        yield 'a last size of sixteen digits is refused' => Vector::refused(
            400,
            self::HEAD . "0000000000000000\r\n\r\n",
        );
        yield 'a size of 64 bits is refused' => Vector::refused(400, self::HEAD . "FFFFFFFFFFFFFFFF\r\nhello");
        yield 'a size that is five after 64 bits is refused' => Vector::refused(
            400,
            self::HEAD . "10000000000000005\r\nhello\r\n0\r\n\r\n",
        );
        yield 'a size that is five after 32 bits is waited for' => Vector::incomplete(
            self::HEAD . "100000005\r\nhello\r\n0\r\n\r\n",
        );
        yield 'an empty size is refused' => Vector::refused(400, self::HEAD . "\r\nhello\r\n0\r\n\r\n");
        yield 'a size below zero is refused' => Vector::refused(400, self::HEAD . "-5\r\nhello\r\n0\r\n\r\n");
        yield 'a last size below zero by nothing is refused' => Vector::refused(400, self::HEAD . "-0\r\n\r\n");
        yield 'a plus before a size is refused' => Vector::refused(400, self::HEAD . "+5\r\nhello\r\n0\r\n\r\n");
        yield 'a size after 0x is refused' => Vector::refused(400, self::HEAD . "0x5\r\nhello\r\n0\r\n\r\n");
        yield 'a last size after 0x is refused' => Vector::refused(400, self::HEAD . "0x0\r\n\r\n");
        yield 'a size after x is refused' => Vector::refused(400, self::HEAD . "x5\r\nhello\r\n0\r\n\r\n");
        yield 'a size with another letter is refused' => Vector::refused(400, self::HEAD . "5g\r\nhello\r\n0\r\n\r\n");
        yield 'a size of another letter is refused' => Vector::refused(400, self::HEAD . "g\r\nhello\r\n0\r\n\r\n");
        yield 'a size with h after it is refused' => Vector::refused(400, self::HEAD . "5h\r\nhello\r\n0\r\n\r\n");
        yield 'a size with an underscore is refused' => Vector::refused(400, self::HEAD . "0_5\r\nhello\r\n0\r\n\r\n");
        yield 'a size with a point is refused' => Vector::refused(400, self::HEAD . "5.0\r\nhello\r\n0\r\n\r\n");
        yield 'a size with a comma is refused' => Vector::refused(400, self::HEAD . "5,5\r\nhello\r\n0\r\n\r\n");
        yield 'a quoted size is refused' => Vector::refused(400, self::HEAD . "\"5\"\r\nhello\r\n0\r\n\r\n");
        yield 'Arabic digits are no size' => Vector::refused(400, self::HEAD . "\u{665}\r\nhello\r\n0\r\n\r\n");
        yield 'wide digits are no size' => Vector::refused(400, self::HEAD . "\u{FF15}\r\nhello\r\n0\r\n\r\n");
        yield 'a blank before a size is refused' => Vector::refused(400, self::HEAD . " 5\r\nhello\r\n0\r\n\r\n");
        yield 'a blank after a size is refused' => Vector::refused(400, self::HEAD . "5 \r\nhello\r\n0\r\n\r\n");
        yield 'a blank in a size is refused' => Vector::refused(400, self::HEAD . "0 5\r\nhello\r\n0\r\n\r\n");
        yield 'a tab before a size is refused' => Vector::refused(400, self::HEAD . "\t5\r\nhello\r\n0\r\n\r\n");
        yield 'a tab after a size is refused' => Vector::refused(400, self::HEAD . "5\t\r\nhello\r\n0\r\n\r\n");
        yield 'a blank after the last size is refused' => Vector::refused(400, self::HEAD . "5\r\nhello\r\n0 \r\n\r\n");
        yield 'a vertical tab after a size is refused' => Vector::refused(
            400,
            self::HEAD . "5\x0B\r\nhello\r\n0\r\n\r\n",
        );
        yield 'NUL after a size is refused' => Vector::refused(400, self::HEAD . "5\0\r\nhello\r\n0\r\n\r\n");
        yield 'NUL before a size is refused' => Vector::refused(400, self::HEAD . "\x005\r\nhello\r\n0\r\n\r\n");
        yield 'LF alone after a size is refused' => Vector::refused(400, self::HEAD . "5\nhello\r\n0\r\n\r\n");
        yield 'LF alone after the last size is refused' => Vector::refused(400, self::HEAD . "5\r\nhello\r\n0\n\r\n");
        yield 'CR alone after a size is refused' => Vector::refused(400, self::HEAD . "5\rhello\r\n0\r\n\r\n");
        yield 'two CR after a size are refused' => Vector::refused(400, self::HEAD . "5\r\r\nhello\r\n0\r\n\r\n");
        yield 'another byte between CR and LF after a size is refused' => Vector::refused(
            400,
            self::HEAD . "5\rX\nhello\r\n0\r\n\r\n",
        );
        yield 'LF before CR after a size is refused' => Vector::refused(400, self::HEAD . "5\n\rhello\r\n0\r\n\r\n");
        yield 'text instead of a size is refused' => Vector::refused(400, self::HEAD . "hello\r\n0\r\n\r\n");
        yield 'a size without its end is waited for' => Vector::incomplete(self::HEAD . '5');
    }
}
