<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Form;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\MultipartParser;
use Spindle\Tests\EndsInTime;

final class MultipartParserTest extends TestCase
{
    use EndsInTime;

    private const FIELD = "Content-Disposition: form-data; name=\"a\"\r\n";

    public function testFieldsAndFilesAreReportedInOrder(): void
    {
        $body = "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nTwo\r\nlines\r\n"
            . "--b\r\nContent-Disposition: form-data; name=\"cover\"; filename=\"a cat.png\"\r\n"
            . "Content-Type: image/png; x=y\r\n\r\n\x89PNG\0\r\n"
            . "--b\r\ncontent-DISPOSITION:form-data;name=empty\r\nX-Anything: 1\r\nX-Anything: 2\r\n\r\n\r\n--b--\r\n";

        self::assertSame([[
            self::part('title', "Two\r\nlines"),
            self::part('cover', "\x89PNG\0", 'a cat.png', 'image/png'),
            self::part('empty', ''),
        ], null], RecordingSink::parse('b', [$body]));
    }

    /** @return iterable<string, array{string, string}> */
    public static function bodies(): iterable
    {
        $part = self::FIELD . "\r\n1";
        yield 'text before and after' => ["This is a form.\r\n--b\r\n{$part}\r\n--b--\r\nGood bye.", '1'];
        yield 'no line end at the end' => ["--b\r\n{$part}\r\n--b--", '1'];
        yield 'an empty line before' => ["\r\n--b\r\n{$part}\r\n--b--\r\n", '1'];
        yield 'blanks behind the boundaries' => ["--b \t \r\n{$part}\r\n--b-- \r\n", '1'];
        yield 'something like a boundary in the data' => [
            "--b\r\n{$part}\r\n--B\r\n--\r\n-b\r--b --b\r\n--b--\r\n",
            "1\r\n--B\r\n--\r\n-b\r--b --b",
        ];
        yield 'line ends around the data' => ["--b\r\n" . self::FIELD . "\r\n\r\n1\r\n\r\n--b--", "\r\n1\r\n"];
        yield 'data that ends in CR' => ["--b\r\n" . self::FIELD . "\r\n1\r\r\n--b--", "1\r"];
        yield 'no data, and one line end for two purposes' => ["--b\r\n" . self::FIELD . "\r\n--b--", ''];
    }

    #[DataProvider('bodies')]
    public function testAllowedTextAroundAndInAPartIsParsed(string $body, string $data): void
    {
        $expected = [[self::part('a', $data)], null];

        self::assertSame($expected, RecordingSink::parse('b', [$body]));
        self::assertSame($expected, RecordingSink::parse('b', str_split($body)));
        for ($at = 1; $at < \strlen($body); ++$at) {
            self::assertSame($expected, RecordingSink::parse('b', [substr($body, 0, $at), substr($body, $at)]));
        }
    }

    public function testAFormWithoutPartsIsOne(): void
    {
        self::assertSame([[], null], RecordingSink::parse('b', ["--b--\r\n"]));
    }

    /** @return iterable<string, array{string, string, string|null}> */
    public static function dispositions(): iterable
    {
        yield 'quotes' => ['name="a;b=c"; filename="x;y.png"', 'a;b=c', 'x;y.png'];
        yield 'without quotes' => ['name=a[b]; filename=x.png', 'a[b]', 'x.png'];
        yield 'escaped quotes' => ['name="\\"a\\""; filename="\\\\x\\"y"', '"a"', '\\x"y'];
        yield 'a path as old browsers send it' => ['name="a"; filename="C:\\dir\\x.png"', 'a', 'C:\\dir\\x.png'];
        yield 'a quote as browsers send it' => ['name="a%22b"; filename="100%22.png"', 'a%22b', '100%22.png'];
        yield 'UTF-8' => ['name="größe"; filename="día.png"', 'größe', 'día.png'];
        yield 'the extended name is ignored' => [
            'name="a"; filename="x.png"; filename*=UTF-8\'\'evil.php',
            'a',
            'x.png',
        ];
        yield 'even alone' => ['name="a"; filename*=UTF-8\'\'evil.php', 'a', null];
        yield 'other order, other parameters' => ['FileName=""; size=3; NAME=""', '', ''];
        yield 'a semicolon at the end' => ['name="a" ; ', 'a', null];
        yield 'empty names without quotes' => ['name=; filename=', '', ''];
        yield 'an empty name at the end' => ['filename=a; name= ', '', 'a'];
        yield 'up and out' => ['name="a"; filename="../../etc/passwd"', 'a', '../../etc/passwd'];
    }

    #[DataProvider('dispositions')]
    public function testNamesAreTakenFromTheirParameters(string $parameters, string $name, ?string $filename): void
    {
        $body = "--b\r\nContent-Disposition: form-data; {$parameters}\r\n\r\n\r\n--b--\r\n";

        self::assertSame([[self::part($name, '', $filename)], null], RecordingSink::parse('b', [$body]));
    }

    /** @return iterable<string, array{string, string}> */
    public static function malformedBodies(): iterable
    {
        $part = self::FIELD . "\r\n1";
        yield 'nothing' => ['', 'ends before its last boundary'];
        yield 'no boundary' => ['hello', 'ends before its last boundary'];
        yield 'no last boundary' => ["--b\r\n{$part}\r\n", 'ends before its last boundary'];
        yield 'half a last boundary' => ["--b\r\n{$part}\r\n--b-", 'ends before its last boundary'];
        yield 'another boundary' => ["--c\r\n{$part}\r\n--c--", 'ends before its last boundary'];
        yield 'a boundary that goes on' => ["--b\r\n{$part}\r\n--bc\r\n{$part}\r\n--b--", 'has other text after'];
        yield 'a boundary with a dash' => ["--b\r\n{$part}\r\n--b-\r\n--b--", 'has other text after'];
        yield 'a boundary before a bare CR' => ["--b\r{$part}\r\n--b--", 'has other text after'];
        yield 'a boundary before a bare LF' => ["--b\n{$part}\r\n--b--", 'has other text after'];
        yield 'too many blanks' => ['--b' . str_repeat(' ', 65) . "\r\n{$part}\r\n--b--", 'has other text after'];
        yield 'a boundary behind a bare LF' => ["--b\r\n{$part}\n--b--", 'before a boundary ends without CR'];
        yield 'a boundary behind a bare LF that is all data' => [
            "--b\r\n" . self::FIELD . "\r\n\n--b--",
            'before a boundary ends without CR',
        ];
        yield 'a boundary behind the last' => [
            "--b\r\n{$part}\r\n--b--\r\n--b\r\n{$part}\r\n--b--",
            'The form has a boundary after its closing boundary',
        ];
        yield 'no header' => ["--b\r\n\r\n1\r\n--b--", 'no valid Content-Disposition'];
        yield 'no Content-Disposition' => [
            "--b\r\nContent-Type: text/plain\r\n\r\n1\r\n--b--",
            'no valid Content-Disposition',
        ];
        foreach ([
            'no name' => 'form-data',
            'no name, but a file' => 'form-data; filename="a"',
            'other than form-data' => 'attachment; name="a"',
            'two names' => 'form-data; name="a"; name="b"',
            'an open quote' => 'form-data; name="a',
            'a closing quote too few' => 'form-data; name="a\\"',
            'a backslash before the last quote' => 'form-data; name="a\\\\"; filename="b"',
            'single quotes' => 'form-data; name=\'a\'',
            'blanks around =' => 'form-data; name = "a"',
            'a blank behind =' => 'form-data; name= "a"',
            'more behind a quote' => 'form-data; name="a"b',
            'a comma' => 'form-data, name="a"',
        ] as $what => $disposition) {
            yield $what => [
                "--b\r\nContent-Disposition: {$disposition}\r\n\r\n1\r\n--b--",
                'no valid Content-Disposition',
            ];
        }
        yield 'a NUL in a name' => [
            "--b\r\nContent-Disposition: form-data; name=\"a\0b\"\r\n\r\n1\r\n--b--",
            'header line of a part is malformed',
        ];
        yield 'a NUL in a file name' => [
            "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x.php\0.png\"\r\n\r\n1\r\n--b--",
            'header line of a part is malformed',
        ];
        yield 'a bare CR in a name' => [
            "--b\r\nContent-Disposition: form-data; name=\"a\rb\"\r\n\r\n1\r\n--b--",
            'header line of a part is malformed',
        ];
        yield 'a folded line' => [
            "--b\r\nContent-Disposition: form-data;\r\n name=\"a\"\r\n\r\n1\r\n--b--",
            'header line of a part is malformed',
        ];
        yield 'a blank before a colon' => [
            "--b\r\nContent-Disposition : form-data; name=\"a\"\r\n\r\n1\r\n--b--",
            'header line of a part is malformed',
        ];
        yield 'a header line that ends in LF' => [
            "--b\r\nContent-Disposition: form-data; name=\"a\"\n\r\n1\r\n--b--",
            'ends without CR',
        ];
        yield 'an empty line that is LF' => ["--b\r\n" . self::FIELD . "\n1\r\n--b--", 'ends without CR'];
        yield 'two Content-Dispositions' => [
            "--b\r\n" . self::FIELD . self::FIELD . "\r\n1\r\n--b--",
            'Content-Disposition twice',
        ];
        yield 'two Content-Types' => [
            "--b\r\n" . self::FIELD . "Content-Type: a/b\r\nContent-Type: a/c\r\n\r\n1\r\n--b--",
            'Content-Type twice',
        ];
    }

    #[DataProvider('malformedBodies')]
    public function testAMalformedBodyIsRefusedForAnySplit(string $body, string $why): void
    {
        $whole = RecordingSink::parse('b', [$body]);

        self::assertStringStartsWith('400 ', (string) $whole[1]);
        self::assertStringContainsString($why, (string) $whole[1]);
        self::assertSame($whole, RecordingSink::parse('b', $body === '' ? [] : str_split($body)));
    }

    /** @return iterable<string, array{string}> */
    public static function wrongBoundaries(): iterable
    {
        yield 'none' => [''];
        yield 'a blank at the end' => ['a '];
        yield 'a line' => ["a\r\nb"];
        yield 'a quote' => ['a"b'];
        yield 'a NUL' => ["a\0"];
        yield '71 characters' => [str_repeat('a', 71)];
    }

    #[DataProvider('wrongBoundaries')]
    public function testAnInvalidBoundaryIsRefused(string $boundary): void
    {
        self::assertSame([[], '400 The Content-Type has no valid boundary'], RecordingSink::parse($boundary, []));
    }

    public function testEveryValidCharacterOfABoundaryIsAccepted(): void
    {
        $boundary = str_pad('\'()+_,-./:=? 9Z', 70, 'a');
        self::assertSame(
            [[self::part('a', '1')], null],
            RecordingSink::parse($boundary, ["--{$boundary}\r\n" . self::FIELD . "\r\n1\r\n--{$boundary}--"]),
        );
    }

    /** @return iterable<string, array{string, string}> */
    public static function bombs(): iterable
    {
        $file = "--b\r\nContent-Disposition: form-data; name=\"a\"";
        yield 'a header line that does not end' => [
            $file . str_repeat('x', 1 << 20),
            '413 The header of a part is longer than 16384 bytes',
        ];
        yield 'a header of a megabyte' => [
            "{$file}\r\n" . str_repeat('X: ' . str_repeat('y', 1000) . "\r\n", 1000),
            '413 The header of a part is longer than 16384 bytes',
        ];
        yield 'header lines without end' => [
            "{$file}\r\n" . implode(array_map(static fn(int $i): string => "X{$i}: 1\r\n", range(1, 1000))),
            '413 A part has more than 20 header lines',
        ];
        yield 'blanks behind a boundary' => [
            '--b' . str_repeat(' ', 1 << 20),
            '400 The line of a boundary has other text after the boundary',
        ];
        yield 'much before the first boundary' => [
            str_repeat('x', 1 << 20),
            '413 The form has more than 16384 bytes around its parts',
        ];
        yield 'much behind the last boundary' => [
            "--b--\r\n" . str_repeat('x', 1 << 20),
            '413 The form has more than 16384 bytes around its parts',
        ];
    }

    #[DataProvider('bombs')]
    public function testAnOversizedBodyIsRefusedAtTheLimit(string $body, string $why): void
    {
        foreach ([1 << 21, 1000, 7] as $size) {
            self::assertSame($why, RecordingSink::parse('b', str_split($body, $size))[1]);
        }
    }

    public function testAnOversizedBodyIsRefusedBeforeItsEnd(): void
    {
        $parser = new MultipartParser('b', new RecordingSink());
        $pushed = 0;
        try {
            for (; $pushed < 1 << 20; $pushed += 1000) {
                $parser->push(($pushed === 0 ? "--b\r\nX: " : '') . str_repeat('x', 1000));
            }
        } catch (HttpException) {
        }

        self::assertLessThan(18_000, $pushed);
    }

    public function testTheParserBuffersNoMoreThanABoundary(): void
    {
        $sink = new RecordingSink();
        $parser = new MultipartParser(str_repeat('b', 70), $sink);
        $parser->push('--' . str_repeat('b', 70) . "\r\n" . self::FIELD . "\r\n");
        for ($pushed = 0; $pushed < 100_000; $pushed += 10) {
            $parser->push(str_repeat("\r\n--b", 2));
            self::assertGreaterThanOrEqual($pushed + 10 - 74, array_sum($sink->pieces));
            $sink->pieces = [array_sum($sink->pieces)];
            $sink->parts = \array_slice($sink->parts, 0, 1);
        }
    }

    public function testNearlyBoundariesCostNoMoreThanOtherData(): void
    {
        $boundary = str_repeat('a', 69) . 'b';
        $near = str_repeat("\r\n--" . str_repeat('a', 69) . 'c', 100_000);
        $parts = RecordingSink::parse(
            $boundary,
            ["--{$boundary}\r\n" . self::FIELD . "\r\n{$near}\r\n--{$boundary}--"],
        )[0];

        self::assertSame([$near], array_column($parts, 'data'));
    }

    public function testAHundredThousandPartsTakeNoMoreTimeEachThanOne(): void
    {
        [$parts, $why] = RecordingSink::parse(
            'b',
            [str_repeat("--b\r\n" . self::FIELD . "\r\n1\r\n", 100_000) . '--b--'],
        );

        self::assertNull($why);
        self::assertCount(100_000, $parts);
    }

    /** @return array{name: string, filename: string|null, type: string|null, data: string, ended: bool} */
    private static function part(string $name, string $data, ?string $filename = null, ?string $type = null): array
    {
        return ['name' => $name, 'filename' => $filename, 'type' => $type, 'data' => $data, 'ended' => true];
    }
}
