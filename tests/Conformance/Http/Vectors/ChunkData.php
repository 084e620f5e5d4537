<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 7.1: the end of a chunk, and of the body. */
final class ChunkData
{
    private const HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'chunks are put together' => Vector::accepted(
            self::HEAD . "2\r\nhe\r\n1\r\nl\r\n2\r\nlo\r\n0\r\n\r\n",
            'POST / "hello" kept',
        );
        yield 'a chunk may hold line ends' => Vector::accepted(
            self::HEAD . "6\r\n\r\n\r\n\r\n\r\n0\r\n\r\n",
            'POST / "\r\n\r\n\r\n" kept',
        );
        yield 'a chunk may hold what looks like the last one' => Vector::accepted(
            self::HEAD . "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n",
            'POST / "\r\n0\r\n\r\n" kept',
        );
        yield 'a chunk may hold any bytes' => Vector::accepted(
            self::HEAD . "4\r\n\0\r\n\xFF\r\n0\r\n\r\n",
            'POST / "\000\r\n\377" kept',
        );
        yield 'what follows the last chunk is the next request' => Vector::accepted(
            self::HEAD . "1\r\nx\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
            'POST / "x" kept',
            'GET /b "" kept',
        );
        yield 'no CRLF after the data is refused' => Vector::refused(400, self::HEAD . "5\r\nhello0\r\n\r\n");
        yield 'LF alone after the data is refused' => Vector::refused(400, self::HEAD . "5\r\nhello\n0\r\n\r\n");
        yield 'CR alone after the data is refused' => Vector::refused(400, self::HEAD . "5\r\nhello\r0\r\n\r\n");
        yield 'two CR after the data are refused' => Vector::refused(400, self::HEAD . "5\r\nhello\r\r\n0\r\n\r\n");
        yield 'LF before CR after the data is refused' => Vector::refused(400, self::HEAD . "5\r\nhello\n\r0\r\n\r\n");
        yield 'two other bytes after the data are refused' => Vector::refused(
            400,
            self::HEAD . "5\r\nhelloXY0\r\n\r\n",
        );
        yield 'another byte after CR is refused' => Vector::refused(400, self::HEAD . "5\r\nhello\rX0\r\n\r\n");
        yield 'another byte before LF is refused' => Vector::refused(400, self::HEAD . "5\r\nhelloX\n0\r\n\r\n");
        yield 'a blank after the data is refused' => Vector::refused(400, self::HEAD . "5\r\nhello \r\n0\r\n\r\n");
        yield 'an empty line after the data is refused' => Vector::refused(
            400,
            self::HEAD . "5\r\nhello\r\n\r\n0\r\n\r\n",
        );
        yield 'data longer than its size is refused' => Vector::refused(400, self::HEAD . "4\r\nhello\r\n0\r\n\r\n");
        yield 'data shorter than its size is refused' => Vector::refused(400, self::HEAD . "6\r\nhello\r\n0\r\n\r\n");
        yield 'data shorter by a line end is refused' => Vector::refused(400, self::HEAD . "7\r\nhello\r\n0\r\n\r\n");
        yield 'a request that spills out of the data is refused' => Vector::refused(
            400,
            self::HEAD . "1\r\nxGET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'data of the last chunk is refused' => Vector::refused(400, self::HEAD . "0\r\nhello\r\n\r\n");
        yield 'a request within the last chunk is refused' => Vector::refused(
            400,
            self::HEAD . "0\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        yield 'data that is not whole is waited for' => Vector::incomplete(self::HEAD . "5\r\nhell");
        yield 'data without its end is waited for' => Vector::incomplete(self::HEAD . "5\r\nhello");
        yield 'data with half of its end is waited for' => Vector::incomplete(self::HEAD . "5\r\nhello\r");
        yield 'the last chunk is waited for' => Vector::incomplete(self::HEAD . "5\r\nhello\r\n");
        yield 'the line after the last chunk is waited for' => Vector::incomplete(self::HEAD . "5\r\nhello\r\n0\r\n");
        yield 'the LF after the last chunk is waited for' => Vector::incomplete(self::HEAD . "5\r\nhello\r\n0\r\n\r");
    }
}
