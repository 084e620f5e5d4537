<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Http;

use Spindle\Tests\Fuzz\Command\Splits;

/** Creates valid requests in a row, with every syntax that a client may use. mt_rand() decides. */
final class Pipeline
{
    private const METHODS = [
        'GET',
        'GET',
        'GET',
        'POST',
        'POST',
        'PUT',
        'HEAD',
        'DELETE',
        'PATCH',
        'PROPFIND',
        "!#$%&'*+-.^_`|~09az",
    ];

    private const TARGETS = [
        '/', '/a/b?c=d&e', '//x', '/%00%zz', '/a/../b', '/?', '/;=@:!$&\'()*+,', '/"<>\\^`{|}~', '/x',
        'http://example.com/a', 'http://[::1]:8080?b', 'HTTPS://x',
    ];

    private const HOSTS = [
        'a',
        'example.com',
        'localhost:8080',
        '127.0.0.1',
        '[2001:db8::1]:443',
        'my_host',
        '',
        'a:',
        '%41',
        '~!$&\'()*+,;=',
    ];

    private const NAMES = [
        'Accept',
        'cookie',
        'User-Agent',
        'X',
        'TE',
        'Upgrade',
        'content-type',
        'Content-Lengths',
        'Hos',
        'Host-',
        'e',
        'Trailer',
        "!#$%&'*+-.^_`|~09azAZ",
    ];

    private const EXTENSIONS = ['', '', '', ';a', ';a=b', ' ; a = "b;\"c"', ";\ta=\"\t\xFF\\\x7E\";b;c"];

    /**
     * Returns the bytes of the requests, and the expected result of each.
     *
     * @return array{string, list<string>} results as {@see \Spindle\Tests\Conformance\Http\Vectors\Reading::verdict()}
     */
    public static function random(): array
    {
        $bytes = '';
        $verdict = [];
        for ($count = mt_rand(1, 4); $count > 0; --$count) {
            [$isKept, $version, $lines] = self::connection();
            [$method, $target] = mt_rand(0, 30) === 0
                ? ['OPTIONS', '*']
                : [self::METHODS[mt_rand(0, 10)], self::target()];
            $body = self::body();
            [$framing, $message] = self::message($body, $version === '1.1');
            $bytes .= mt_rand(0, 20) === 0 ? "\r\n" : '';
            $bytes .= "{$method} {$target} HTTP/{$version}\r\n"
                . self::fields([...$lines, ...$framing])
                . "\r\n{$message}";
            $verdict[] = "{$method} {$target} \""
                . addcslashes($body, "\0..\37\"\\\177..\377")
                . '" '
                . ($isKept ? 'kept' : 'closed');
            if (!$isKept) {
                break;
            }
        }

        return [$bytes, $verdict];
    }

    /** @return array{bool, string, list<string>} whether the connection is kept, the version, and the lines for that */
    private static function connection(): array
    {
        $host = self::line('Host', self::HOSTS[mt_rand(0, 9)]);

        return match (mt_rand(0, 24)) {
            0 => [false, '1.1', [$host, self::line('Connection', 'close')]],
            1 => [false, '1.1', [$host, self::line('Connection', 'TE, close'), self::line('Connection', 'keep-alive')]],
            2 => [false, '1.0', []],
            3 => [true, '1.0', [$host, self::line('Connection', 'keep-alive')]],
            4 => [true, '1.0', [self::line('Connection', ',TE ,keep-alive')]],
            5 => [true, '1.1', [$host, self::line('Connection', 'Upgrade')]],
            6, 7, 8 => [true, '1.1', [$host, self::line('Connection', 'keep-alive')]],
            default => [true, '1.1', [$host]],
        };
    }

    private static function target(): string
    {
        if (mt_rand(0, 2) !== 0) {
            return self::TARGETS[mt_rand(0, 11)];
        }
        $target = '/';
        for ($left = mt_rand(0, mt_rand(0, 9) === 0 ? 150 : 30); $left > 0; --$left) {
            $byte = \chr(mt_rand(0x21, 0x7E));
            $target .= $byte === '#' ? '%23' : $byte;
        }

        return $target;
    }

    private static function body(): string
    {
        return match (mt_rand(0, 40)) {
            0 => str_repeat("0\r\n\r\nGET / HTTP/1.1\r\n", mt_rand(1, 20)),
            1 => Splits::bytes(mt_rand(100, 600)),
            2, 3, 4, 5, 6, 7, 8, 9, 10, 11 => Splits::bytes(mt_rand(1, 20)),
            default => '',
        };
    }

    /** @return array{list<string>, string} lines that set the length of the body, and the encoded body */
    private static function message(string $body, bool $mayBeChunked): array
    {
        $expectation = mt_rand(0, 20) === 0 ? [self::line('Expect', '100-continue')] : [];
        if ($mayBeChunked && mt_rand(0, 2) === 0) {
            return [[self::line('Transfer-Encoding', 'chunked'), ...$expectation], self::chunks($body)];
        }
        $isSaid = $body !== '' || mt_rand(0, 5) === 0;

        return [
            $isSaid
                ? [self::line('Content-Length', str_repeat('0', mt_rand(0, 2)) . \strlen($body)), ...$expectation]
                : $expectation,
            $body,
        ];
    }

    private static function chunks(string $body): string
    {
        $chunks = '';
        foreach (Splits::random($body, mt_rand(1, 30)) as $piece) {
            $chunks .= self::size(\strlen($piece)) . "{$piece}\r\n";
        }
        $trailers = mt_rand(0, 3) === 0
            ? self::fields([]) . (mt_rand(0, 1) === 0 ? self::line('Content-Length', '9') : '')
            : '';

        return $chunks . self::size(0) . "{$trailers}\r\n";
    }

    private static function size(int $bytes): string
    {
        $digits = dechex($bytes);

        return str_repeat('0', mt_rand(0, 20) === 0 ? 15 - \strlen($digits) : 0)
            . (mt_rand(0, 1) === 0 ? strtoupper($digits) : $digits)
            . self::EXTENSIONS[mt_rand(0, 6)] . "\r\n";
    }

    /** @param list<string> $lines lines to send together with random ones, in random order */
    private static function fields(array $lines): string
    {
        for ($count = mt_rand(0, 4); $count > 0; --$count) {
            $lines[] = self::line(self::NAMES[mt_rand(0, 12)], self::value());
        }
        shuffle($lines);

        return implode('', $lines);
    }

    /** Returns a header line with random case in its name, and random blanks around its value. */
    private static function line(string $name, string $value): string
    {
        $name = match (mt_rand(0, 3)) {
            0 => strtoupper($name),
            1 => strtolower($name),
            default => $name,
        };

        return "{$name}:"
            . ['', ' ', ' ', " \t "][mt_rand(0, 3)]
            . $value
            . (mt_rand(0, 7) === 0 ? "\t " : '')
            . "\r\n";
    }

    private static function value(): string
    {
        $value = '';
        for ($left = mt_rand(0, 12); $left > 0; --$left) {
            $byte = mt_rand(0x20, 0xFF);
            $value .= $byte === 0x7F ? "\t" : \chr($byte);
        }

        return $value;
    }
}
