<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Http;

/** Damages requests like attacks that smuggle requests. mt_rand() decides how. */
final class Mutator
{
    private const SPECIAL = [
        "\0",
        "\r",
        "\n",
        "\r\n",
        "\r\r\n",
        "\n\n",
        "\r\n\r\n",
        "\r\n ",
        "\n\t",
        ' ',
        "\t",
        "\x0B",
        "\x0C",
        "\x7F",
        "\x80",
        "\xA0",
        "\xFF",
        ':',
        ';',
        ',',
        '"',
        '\\',
        '=',
        '/',
        '#',
        '*',
        '0',
        '5',
        '-',
        '+',
        '0x',
        'f',
        '_',
        'HTTP/1.0',
        'HTTP/1.1',
        'HTTP/2.0',
        'chunked',
        'close',
        "0\r\n\r\n",
        "5\r\nhello\r\n",
        "Host: b\r\n",
        "Content-Length: 1\r\n",
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: x\r\n",
        "Connection: close\r\n",
        "Expect: 100-continue\r\n",
        "Expect: x\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        'CONNECT',
        '9999999999999999999',
    ];

    private const ENDS = ["\n", "\r", "\n\r", "\r\r\n", '', "\r\n\r\n", " \r\n", "\r\n ", "\0\r\n"];

    public static function of(string $bytes): string
    {
        for ($count = mt_rand(1, 3); $count > 0; --$count) {
            $bytes = self::once($bytes);
        }

        return $bytes;
    }

    private static function once(string $bytes): string
    {
        $size = \strlen($bytes);
        $at = mt_rand(0, $size);

        return match (mt_rand(0, 10)) {
            0 => substr_replace($bytes, \chr(mt_rand(0, 255)), $at, 1),
            1 => $at < $size ? substr_replace($bytes, $bytes[$at] ^ \chr(1 << mt_rand(0, 7)), $at, 1) : $bytes,
            2 => substr_replace($bytes, '', $at, mt_rand(1, 8)),
            3, 4 => substr_replace($bytes, self::special(), $at, 0),
            5 => substr_replace($bytes, self::special(), $at, mt_rand(1, 8)),
            6 => substr($bytes, 0, $at),
            7 => self::atLine($bytes, $at, static fn(string $line): string => $line . $line),
            8 => self::atLine(
                $bytes,
                $at,
                static fn(string $line): string => rtrim($line, "\r\n") . self::ENDS[mt_rand(0, 8)],
            ),
            9 => self::atLine($bytes, $at, static fn(string $line): string => self::special() . $line),
            10 => self::special() . (string) strstr($bytes, ' '),
        };
    }

    private static function special(): string
    {
        return self::SPECIAL[mt_rand(0, \count(self::SPECIAL) - 1)];
    }

    /** @param \Closure(string): string $change changes the next line after the offset, which it gets with its end */
    private static function atLine(string $bytes, int $at, \Closure $change): string
    {
        $begin = strpos($bytes, "\n", $at);
        $end = $begin === false ? false : strpos($bytes, "\n", $begin + 1);

        return $end === false
            ? $bytes
            : substr_replace($bytes, $change(substr($bytes, $begin + 1, $end - $begin)), $begin + 1, $end - $begin);
    }
}
