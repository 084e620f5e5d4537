<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 6.1 and 6.3: request smuggling. */
final class Codings
{
    private const BODY = "5\r\nhello\r\n0\r\n\r\n";

    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a body in chunks is accepted' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
            'POST / "hello" kept',
        );
        yield 'the case of a coding does not matter' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\ntRANSFER-eNCODING: cHUNKED\r\n\r\n" . self::BODY,
            'POST / "hello" kept',
        );
        yield 'blanks around a coding are none of it' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\t chunked \t\r\n\r\n" . self::BODY,
            'POST / "hello" kept',
        );
        yield 'no blank is needed before a coding' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:chunked\r\n\r\n" . self::BODY,
            'POST / "hello" kept',
        );
        yield 'GET may have a body in chunks' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
            'GET / "hello" kept',
        );
        yield 'a coding with an underscore in its name is a field like others' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n",
            'POST / "" kept',
        );
        yield 'a coding of the content is no coding of the transfer' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'what a client takes is no coding of what it sends' => Vector::accepted(
            "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers, deflate\r\nContent-Length: 5\r\n\r\nhello",
            'POST / "hello" kept',
        );
        yield 'a length before a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a length after a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" . self::BODY,
        );
        yield 'a length of nothing with a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'the right length with a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a request smuggled behind the length is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                . "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'a request smuggled in a chunk is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                . "26\r\nGET /admin HTTP/1.1\r\nHost: a\r\nX: 1234\r\n\r\n0\r\n\r\n",
        );
        yield 'a coding in HTTP/1.0 is refused' => Vector::refused(
            400,
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a coding in HTTP/1.0 that is kept is refused' => Vector::refused(
            400,
            "POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a coding and a length in HTTP/1.0 are refused' => Vector::refused(
            400,
            "POST / HTTP/1.0\r\nContent-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'the same coding twice is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
                . self::BODY,
        );
        yield 'the same coding twice in a list is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n" . self::BODY,
        );
        yield 'an unknown coding after chunks is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n" . self::BODY,
        );
        yield 'an unknown coding before chunks is refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'chunks that are not the last coding are refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n" . self::BODY,
        );
        yield 'chunks after identity are refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n" . self::BODY,
        );
        yield 'compressed chunks are refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" . self::BODY,
        );
        yield 'compression without chunks is refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        );
        yield 'identity is refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'an unknown coding with a parameter is not understood' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x;q=\"1\", chunked\r\n\r\n" . self::BODY,
        );
        yield 'two unknown codings are not understood' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x, y\r\n\r\nhello",
        );
        yield 'an unknown coding of HTTP/1.0 is refused' => Vector::refused(
            400,
            "POST / HTTP/1.0\r\nTransfer-Encoding: x\r\n\r\nhello",
        );
        yield 'an unknown coding between chunks is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, x, chunked\r\n\r\n" . self::BODY,
        );
        yield 'chunks with a parameter after an unknown coding are refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x, chunked;q=1\r\n\r\n" . self::BODY,
        );
        yield 'an empty coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello",
        );
        yield 'an empty coding beside chunks is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a comma before a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , chunked\r\n\r\n" . self::BODY,
        );
        yield 'a comma after a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n" . self::BODY,
        );
        yield 'a parameter of a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n" . self::BODY,
        );
        yield 'a coding with a letter before it is refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n" . self::BODY,
        );
        yield 'a coding with a letter after it is refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunkedx\r\n\r\n" . self::BODY,
        );
        yield 'a coding that is cut short is refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunk\r\n\r\n" . self::BODY,
        );
        yield 'a coding in double quotes is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n" . self::BODY,
        );
        yield 'a coding in single quotes is refused' => Vector::refused(
            501,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: 'chunked'\r\n\r\n" . self::BODY,
        );
        yield 'a coding in brackets is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: [chunked]\r\n\r\n" . self::BODY,
        );
        yield 'a coding after another colon is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a coding after an equals sign is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding= chunked\r\n\r\n" . self::BODY,
        );
        yield 'a vertical tab before a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0Bchunked\r\n\r\n" . self::BODY,
        );
        yield 'a vertical tab after a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x0B\r\n\r\n" . self::BODY,
        );
        yield 'a form feed before a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0Cchunked\r\n\r\n" . self::BODY,
        );
        yield 'a blank that does not break, before a coding, is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \xA0chunked\r\n\r\n" . self::BODY,
        );
        yield 'a byte beyond ASCII after a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\xFF\r\n\r\n" . self::BODY,
        );
        yield 'a letter that only looks like a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chun\u{212A}ed\r\n\r\n" . self::BODY,
        );
        yield 'NUL after a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\0\r\n\r\n" . self::BODY,
        );
        yield 'CR before a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \rchunked\r\n\r\n" . self::BODY,
        );
        yield 'CR after a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\r\n\r\n" . self::BODY,
        );
        yield 'LF alone after a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\nX: y\r\n\r\n" . self::BODY,
        );
        yield 'a coding behind LF in another field is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a coding behind CR in another field is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a coding on the next line is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" . self::BODY,
        );
        yield 'a coding that goes on on the next line is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n , identity\r\n\r\n" . self::BODY,
        );
        yield 'a name that goes on on the next line is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\r\n : chunked\r\n\r\n" . self::BODY,
        );
        yield 'a blank before the name of a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: a\r\n\r\n" . self::BODY,
        );
        yield 'a blank before the colon of a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n" . self::BODY,
        );
        yield 'a tab before the colon of a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n" . self::BODY,
        );
        yield 'NUL before the name of a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\n\0Transfer-Encoding: chunked\r\n\r\n" . self::BODY,
        );
        yield 'NUL after the name of a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\0: chunked\r\n\r\n" . self::BODY,
        );
        yield 'a semicolon after the name of a coding is refused' => Vector::refused(
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding;: chunked\r\n\r\n" . self::BODY,
        );
    }
}
