<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 7.1.1. */
final class ChunkExtensions
{
    private const HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a name is an extension' => Vector::accepted(
            self::HEAD . "5;a\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'a name with a value is an extension' => Vector::accepted(
            self::HEAD . "5;a=b\r\nhello\r\n0;c=d\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'several extensions are accepted' => Vector::accepted(
            self::HEAD . "5;a;b=c;d=\"e\";f\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'a quoted value may hold what separates' => Vector::accepted(
            self::HEAD . "5;a=\"b;c=d, \t\"\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'a quoted value may hold quotes' => Vector::accepted(
            self::HEAD . "5;a=\"\\\"\\\\\"\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'a quoted value may be empty' => Vector::accepted(
            self::HEAD . "5;a=\"\"\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'blanks around a semicolon are accepted' => Vector::accepted(
            self::HEAD . "5 \t; a\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'blanks around an equals sign are accepted' => Vector::accepted(
            self::HEAD . "5;a = b\r\nhello\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'a semicolon alone is refused' => Vector::refused(400, self::HEAD . "5;\r\nhello\r\n0\r\n\r\n");
        yield 'a semicolon at the end is refused' => Vector::refused(400, self::HEAD . "5;a;\r\nhello\r\n0\r\n\r\n");
        yield 'two semicolons are refused' => Vector::refused(400, self::HEAD . "5;;a\r\nhello\r\n0\r\n\r\n");
        yield 'an extension without a size is refused' => Vector::refused(
            400,
            self::HEAD . ";a=b\r\nhello\r\n0\r\n\r\n",
        );
        yield 'an extension without a name is refused' => Vector::refused(
            400,
            self::HEAD . "5;=b\r\nhello\r\n0\r\n\r\n",
        );
        yield 'an extension without a value is refused' => Vector::refused(
            400,
            self::HEAD . "5;a=\r\nhello\r\n0\r\n\r\n",
        );
        yield 'an extension with two values is refused' => Vector::refused(
            400,
            self::HEAD . "5;a=b=c\r\nhello\r\n0\r\n\r\n",
        );
        yield 'an extension without a semicolon is refused' => Vector::refused(
            400,
            self::HEAD . "5 a=b\r\nhello\r\n0\r\n\r\n",
        );
        yield 'an extension after a comma is refused' => Vector::refused(
            400,
            self::HEAD . "5,a=b\r\nhello\r\n0\r\n\r\n",
        );
        yield 'a blank after an extension is refused' => Vector::refused(
            400,
            self::HEAD . "5;a=b \r\nhello\r\n0\r\n\r\n",
        );
        yield 'a blank in the name of an extension is refused' => Vector::refused(
            400,
            self::HEAD . "5;a b\r\nhello\r\n0\r\n\r\n",
        );
        yield 'a quote that is not closed is refused' => Vector::refused(
            400,
            self::HEAD . "5;a=\"b\r\nhello\r\n0\r\n\r\n",
        );
        yield 'a quote whose end is escaped is refused' => Vector::refused(
            400,
            self::HEAD . "5;a=\"b\\\"\r\nhello\r\n0\r\n\r\n",
        );
        yield 'text after a quote is refused' => Vector::refused(400, self::HEAD . "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n");
        yield 'a quoted name is refused' => Vector::refused(400, self::HEAD . "5;\"a\"=b\r\nhello\r\n0\r\n\r\n");
        yield 'bytes beyond ASCII outside quotes are refused' => Vector::refused(
            400,
            self::HEAD . "5;a=\u{E9}\r\nhello\r\n0\r\n\r\n",
        );
        yield 'NUL in an extension is refused' => Vector::refused(400, self::HEAD . "5;a=b\0\r\nhello\r\n0\r\n\r\n");
        yield 'NUL in quotes is refused' => Vector::refused(400, self::HEAD . "5;a=\"\0\"\r\nhello\r\n0\r\n\r\n");
        yield 'CR in an extension is refused' => Vector::refused(400, self::HEAD . "5;a\rb\r\nhello\r\n0\r\n\r\n");
        yield 'CR in quotes is refused' => Vector::refused(400, self::HEAD . "5;a=\"\r\"\r\nhello\r\n0\r\n\r\n");
        yield 'CR at the end of an extension is refused' => Vector::refused(
            400,
            self::HEAD . "5;a\r\r\nhello\r\n0\r\n\r\n",
        );
        yield 'LF alone after an extension is refused' => Vector::refused(400, self::HEAD . "5;a\nhello\r\n0\r\n\r\n");
        yield 'LF alone after a semicolon is refused' => Vector::refused(
            400,
            self::HEAD . "2;\nxx\r\n26\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n\r\n0\r\n\r\n",
        );
        yield 'LF in quotes is refused' => Vector::refused(400, self::HEAD . "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n");
        yield 'an escaped LF in quotes is refused' => Vector::refused(
            400,
            self::HEAD . "5;a=\"\\\n\"\r\nhello\r\n0\r\n\r\n",
        );
        yield 'a size hidden in quotes is refused' => Vector::refused(
            400,
            self::HEAD . "2;a=\"\r\n0\r\n\r\nGET /admin HTTP/1.1\r\n\"\r\nxx\r\n0\r\n\r\n",
        );
        yield 'CR without LF after a semicolon is refused' => Vector::refused(400, self::HEAD . "2;\rxx\r\n0\r\n\r\n");
        yield 'an extension of the last size that is malformed is refused' => Vector::refused(
            400,
            self::HEAD . "0;\r\n\r\n",
        );
        yield 'an extension without its end is waited for' => Vector::incomplete(self::HEAD . '5;a="');
    }
}
