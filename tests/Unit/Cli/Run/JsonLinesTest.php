<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Input\BadRecordException;
use Spindle\Cli\Internal\Run\JsonLines;

final class JsonLinesTest extends TestCase
{
    /** @return iterable<string, array{string, array{int|float|string, string}}> */
    public static function tasks(): iterable
    {
        yield 'a string' => ['{"id":"task_1","cmd":"echo 1"}', ['task_1', 'echo 1']];
        yield 'a number' => ['{"id":7,"cmd":""}', [7, '']];
        yield 'a broken number' => ['{"id":1.5,"cmd":"x"}', [1.5, 'x']];
        yield 'a number beyond 64 bits' => [
            '{"id":123456789012345678901234567890,"cmd":"x"}',
            ['123456789012345678901234567890', 'x'],
        ];
        yield 'any text' => ['{"id":"\u00fc\ud83d\ude00","cmd":"echo \"ü\"\n"}', ['ü😀', "echo \"ü\"\n"]];
        yield 'more members' => ['{"cmd":"x","group":[1],"id":1}', [1, 'x']];
        yield 'a member with many levels' => [
            '{"id":1,"cmd":"x","meta":' . str_repeat('[', 500) . str_repeat(']', 500) . '}', [1, 'x'],
        ];
        yield 'white space around' => [" {\"id\":1,\"cmd\":\"x\"}\r", [1, 'x']];
        yield 'bytes' => ['{"id":"/w==","cmd":"ZWNobyD/","base64":["id","cmd"]}', ["\xff", "echo \xff"]];
    }

    /** @param array{int|float|string, string} $expected */
    #[DataProvider('tasks')]
    public function testATaskIsAnIdAndACommandLine(string $line, array $expected): void
    {
        self::assertSame($expected, JsonLines::decodeTask($line));
    }

    /** @return iterable<string, array{string, string}> */
    public static function badTasks(): iterable
    {
        yield 'no JSON' => ['echo 1', 'not JSON: Syntax error'];
        yield 'nothing' => ['', 'not JSON: Syntax error'];
        yield 'cut off' => ['{"id":1,"cmd":"echo', 'not JSON: '];
        yield 'too many levels' => [
            '{"id":1,"cmd":"x","meta":' . str_repeat('[', 512) . str_repeat(']', 512) . '}',
            'the JSON is nested too deeply; the limit is 512 levels',
        ];
        yield 'not UTF-8' => ["{\"id\":1,\"cmd\":\"\xff\"}", 'not JSON: Malformed UTF-8'];
        yield 'a list' => ['[1,"x"]', 'not a JSON object'];
        yield 'a string' => ['"x"', 'not a JSON object'];
        yield 'no id' => ['{"cmd":"x"}', '"id" is missing'];
        yield 'no command' => ['{"id":1}', '"cmd" is missing'];
        yield 'an id of another type' => ['{"id":null,"cmd":"x"}', '"id" must be a string or a number'];
        foreach (['1e999', '-1e999', '1.5E+400'] as $number) {
            yield "an id of {$number}" => [
                "{\"id\":{$number},\"cmd\":\"x\"}",
                '"id" is a number that is too large; give a string',
            ];
        }
        yield 'a list for an id' => ['{"id":[1e999],"cmd":"x"}', '"id" must be a string or a number'];
        yield 'a command of another type' => ['{"id":1,"cmd":["x"]}', '"cmd" must be a string'];
        yield 'no base64' => [
            '{"id":1,"cmd":"!","base64":["cmd"]}',
            '"cmd" is listed in "base64", but is not valid base64',
        ];
    }

    #[DataProvider('badTasks')]
    public function testAnotherLineIsRefusedWithTheReason(string $line, string $message): void
    {
        $this->expectException(BadRecordException::class);
        $this->expectExceptionMessage($message);

        JsonLines::decodeTask($line);
    }

    public function testAResultIsOneLine(): void
    {
        self::assertSame(
            '{"id":"a/b","status":137,"stdout":"ü\n\"x\"","stderr":""}' . "\n",
            self::encode('a/b', 137, "ü\n\"x\"", ''),
        );
        self::assertSame('{"id":1.0,"status":0,"stdout":"","stderr":"e"}' . "\n", self::encode(1.0, 0, '', 'e'));
    }

    /** @return iterable<string, array{string, bool}> */
    public static function outputs(): iterable
    {
        yield 'text' => ['abc', true];
        yield 'control characters' => [implode('', array_map(chr(...), range(0, 127))), true];
        yield 'the highest character' => ["\u{10FFFF}", true];
        yield 'line separators' => ["\u{2028}\u{2029}", true];
        yield 'a lone byte' => ["a\xffb", false];
        yield 'a character that is cut off' => ["a\xe2\x82", false];
        yield 'an overlong character' => ["\xc0\xaf", false];
        yield 'a surrogate' => ["\xed\xa0\x80", false];
        foreach (['é', '€', '😀'] as $character) {
            for ($shift = 0; $shift < 4; ++$shift) {
                // The shift makes characters of several bytes lie across every border between pieces.
                yield "{$character} across pieces, {$shift}" => [
                    str_repeat('x', $shift) . str_repeat($character, 600_000),
                    true,
                ];
            }
        }
        yield 'large, with a lone byte at the end' => [str_repeat('€', 600_000) . "\xe2", false];
        yield 'large and random' => [random_bytes(2_000_000), false];
    }

    #[DataProvider('outputs')]
    public function testAnyOutputComesBackByteForByte(string $output, bool $isText): void
    {
        $decoded = json_decode(self::encode(1, 0, $output, $output), true, 512, JSON_THROW_ON_ERROR);

        self::assertIsArray($decoded);
        self::assertSame($isText ? null : ['stdout', 'stderr'], $decoded['base64'] ?? null);
        foreach (['stdout', 'stderr'] as $key) {
            self::assertIsString($decoded[$key]);
            self::assertTrue($output === ($isText ? $decoded[$key] : base64_decode($decoded[$key], true)));
        }
    }

    public function testAnIdThatIsNotUtf8IsBase64InBothDirections(): void
    {
        $line = self::encode("\xff", 0, '', '');

        self::assertSame('{"id":"/w==","status":0,"stdout":"","stderr":"","base64":["id"]}' . "\n", $line);
    }

    private static function encode(int|float|string $id, int $status, string $stdout, string $stderr): string
    {
        return implode('', [...JsonLines::encodeResult($id, $status, self::stream($stdout), self::stream($stderr))]);
    }

    /** @return resource */
    private static function stream(string $bytes): mixed
    {
        $stream = fopen('php://memory', 'w+');
        self::assertIsResource($stream);
        fwrite($stream, $bytes);
        rewind($stream);

        return $stream;
    }
}
