<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 7.1.2, and RFC 9110, 6.5. */
final class Trailers
{
    private const BODY = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n";

    private const NEXT = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";

    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'trailer fields are accepted' => Vector::accepted(
            self::BODY . "X: b\r\nY:\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'trailer fields end before the next request' => Vector::accepted(
            self::BODY . "X: b\r\n\r\n" . self::NEXT,
            'POST / "hello" kept',
            'GET /b "" kept',
        );
        yield 'a length in a trailer says nothing' => Vector::accepted(
            self::BODY . "Content-Length: 100\r\n\r\n" . self::NEXT,
            'POST / "hello" kept',
            'GET /b "" kept',
        );
        yield 'a coding in a trailer says nothing' => Vector::accepted(
            self::BODY . "Transfer-Encoding: gzip\r\n\r\n" . self::NEXT,
            'POST / "hello" kept',
            'GET /b "" kept',
        );
        yield 'a Host in a trailer says nothing' => Vector::accepted(
            self::BODY . "Host: b\r\n\r\n" . self::NEXT,
            'POST / "hello" kept',
            'GET /b "" kept',
        );
        yield 'a connection option in a trailer says nothing' => Vector::accepted(
            self::BODY . "Connection: close\r\n\r\n" . self::NEXT,
            'POST / "hello" kept',
            'GET /b "" kept',
        );
        yield 'a blank before the colon of a trailer field is refused' => Vector::refused(
            400,
            self::BODY . "X : b\r\n\r\n",
        );
        yield 'a trailer field without a name is refused' => Vector::refused(400, self::BODY . ": b\r\n\r\n");
        yield 'a trailer field without a colon is refused' => Vector::refused(400, self::BODY . "X\r\n\r\n");
        yield 'a trailer field that goes on on the next line is refused' => Vector::refused(
            400,
            self::BODY . "X: b\r\n c\r\n\r\n",
        );
        yield 'a blank before the first trailer field is refused' => Vector::refused(400, self::BODY . " X: b\r\n\r\n");
        yield 'a blank in the line after the trailer fields is refused' => Vector::refused(
            400,
            self::BODY . " \r\n\r\n",
        );
        yield 'NUL in a trailer field is refused' => Vector::refused(400, self::BODY . "X: \0\r\n\r\n");
        yield 'CR in a trailer field is refused' => Vector::refused(400, self::BODY . "X: b\rc\r\n\r\n");
        yield 'CR at the end of a trailer field is refused' => Vector::refused(400, self::BODY . "X: b\r\r\n\r\n");
        yield 'LF alone after a trailer field is refused' => Vector::refused(400, self::BODY . "X: b\n\r\n");
        yield 'LF alone after the trailer fields is refused' => Vector::refused(
            400,
            self::BODY . "X: b\r\n\n" . self::NEXT,
        );
        yield 'LF alone instead of trailer fields is refused' => Vector::refused(400, self::BODY . "\n" . self::NEXT);
        yield 'two CR instead of trailer fields are refused' => Vector::refused(
            400,
            self::BODY . "\r\r\n" . self::NEXT,
        );
        yield 'the next request instead of trailer fields is refused' => Vector::refused(400, self::BODY . self::NEXT);
        yield 'DEL in a trailer field is refused' => Vector::refused(400, self::BODY . "X: \x7F\r\n\r\n");
        yield 'a parenthesis in the name of a trailer field is refused' => Vector::refused(
            400,
            self::BODY . "X(: b\r\n\r\n",
        );
        yield 'trailer fields without their end are waited for' => Vector::incomplete(self::BODY . "X: b\r\n");
    }
}
