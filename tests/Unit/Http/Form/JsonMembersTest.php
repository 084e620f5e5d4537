<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Form;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Form\JsonMembers;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\ProcessorTime;
use Spindle\Tests\Scale;

final class JsonMembersTest extends TestCase
{
    use EndsInTime;

    private const MIB = 1_048_576;

    /** Sizes of objects in random values. */
    private const SIZES = [
        0,
        1,
        1,
        2,
        3,
        JsonMembers::MAX_UNCOUNTED_MEMBERS - 1,
        JsonMembers::MAX_UNCOUNTED_MEMBERS,
        JsonMembers::MAX_UNCOUNTED_MEMBERS + 1,
        JsonMembers::MAX_UNCOUNTED_MEMBERS + 50,
    ];

    /** Parts of keys and strings that look like structure. */
    private const ATOMS = ['a', '{', '}', ':', '"', '\\', '":', '\\"', '/', 'é', "\n", '":{', '0'];

    /** @return iterable<string, array{string, int}> a text, and how many of its members count */
    public static function texts(): iterable
    {
        $hundred = self::members(JsonMembers::MAX_UNCOUNTED_MEMBERS);
        yield 'no object' => ['[' . str_repeat('"a:b",', 500) . '0]', 0];
        yield 'objects with few members' => ['[' . str_repeat("{{$hundred}},", 10) . '{}]', 0];
        yield 'one member more' => ['{' . $hundred . ',"x":0}', 101];
        yield 'two such objects' => ['[{' . $hundred . ',"x":0},{' . $hundred . ',"x":0}]', 202];
        yield 'objects in an object' => ['{' . $hundred . ',"x":{' . $hundred . '}}', 101];
        yield 'a large object in a small one' => ['{"a":{' . $hundred . ',"x":0},"b":1}', 101];
        yield 'members on both sides of an object' => [
            '{' . self::members(60) . ',"x":{"y":1},' . self::members(60) . '}',
            121,
        ];
        yield 'objects in a list' => ['[{"a":1},[{' . $hundred . ',"x":[{},{}]}]]', 101];
        yield 'blanks around colons' => ['{' . str_replace(':', " \n:\t", $hundred) . ', "x" : 0}', 101];
        yield 'an end of an object in its keys' => ['{' . str_replace('"k', '"}{', $hundred) . ',"}":0}', 101];
        yield 'colons in strings' => ['[' . str_repeat('{"at":"00:00:00:00"},', 100) . '0]', 0];
        yield 'quotes in strings' => ['[' . str_repeat('"\\":{",', 200) . '{"\\\\":0}]', 0];
        yield 'keys that end in backslashes' => ['{' . str_replace('":', '\\\\":', $hundred) . ',"\\\\":0}', 101];
    }

    /** @return iterable<string, array{string}> */
    public static function items(): iterable
    {
        yield 'small objects' => ['{"":0}'];
        yield 'records' => ['{"id":1,"value":2}'];
        yield 'lists' => ['[0]'];
        yield 'lists in lists' => ['[[[[[[0]]]]]]'];
        yield 'longer lists' => ['[0,0,0,0,0,0,0,0,0]'];
        yield 'longer objects' => ['{"a1":0,"b1":0,"c1":0,"d1":0,"e1":0,"f1":0,"g1":0,"h1":0,"i1":0}'];
        yield 'numbers' => ['0'];
        yield 'strings' => ['"ab"'];
        yield 'nothing' => ['{}'];
    }

    #[DataProvider('items')]
    public function testTheMemoryThatIsNeededIsNotUnderestimated(string $item): void
    {
        $json = '[' . implode(',', array_fill(0, intdiv(self::MIB, \strlen($item) + 1), $item)) . ']';
        $before = memory_get_usage();
        $value = json_decode($json, true);
        $needed = memory_get_usage() - $before;

        self::assertGreaterThan($needed, JsonMembers::maxMemoryBytes($json));
        self::assertLessThan(4 * $needed, JsonMembers::maxMemoryBytes($json));
        unset($value);
    }

    #[DataProvider('texts')]
    public function testMembersOfLargeObjectsAreCounted(string $json, int $count): void
    {
        self::assertNotNull(json_decode($json));
        self::assertFalse(JsonMembers::exceeds($json, $count));
        if ($count > 0) {
            self::assertTrue(JsonMembers::exceeds($json, $count - 1));
        }
    }

    /** PCRE counts each repetition of a group against pcre.backtrack_limit. */
    #[TestWith([':'])]
    #[TestWith(['\\n\\":'])]
    public function testManyStringsAreNotMembers(string $text): void
    {
        $text = str_repeat($text, 3);
        $json = '[' . str_repeat("\"{$text}\",", 1_000_000) . '"' . str_repeat($text, 1_000_000) . '"]';

        self::assertFalse(JsonMembers::exceeds($json, 2000));
    }

    public function testTheCountIsThatOfTheDecodedText(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.3, 100) as $_) {
            $value = self::value(3);
            $json = json_encode(
                $value,
                \JSON_THROW_ON_ERROR | (mt_rand(
                    0,
                    1,
                ) === 0 ? 0 : \JSON_PRETTY_PRINT | \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES),
            );
            $count = self::counted($value);

            self::assertFalse(JsonMembers::exceeds($json, $count), $json);
            self::assertSame($count > 0, JsonMembers::exceeds($json, max(0, $count - 1)), $json);
        }
    }

    /** @return iterable<string, array{string}> */
    public static function costly(): iterable
    {
        $colons = str_repeat(':', 3000);
        yield 'a string without an end' => [$colons . '"' . str_repeat('\\"', intdiv(self::MIB, 2))];
        yield 'a string of escapes' => [$colons . '"' . str_repeat('\\n', intdiv(self::MIB, 2)) . '"'];
        yield 'a backslash at the end' => [$colons . '"' . str_repeat('x', self::MIB) . '\\'];
        yield 'strings' => [str_repeat('"":', intdiv(self::MIB, 3))];
        yield 'opened objects' => [str_repeat('{', self::MIB) . $colons];
        yield 'closed objects' => [str_repeat('}', self::MIB) . $colons];
        yield 'objects in objects' => [str_repeat(str_repeat('{"":', 60) . '0' . str_repeat('}', 60) . ',', 3400)];
        yield 'small objects' => [str_repeat('{"":0},', 140_000)];
        yield 'colons' => [str_repeat(':', self::MIB)];
        yield 'a colon after each number' => [str_repeat('1:', intdiv(self::MIB, 2))];
    }

    /** A quadratic algorithm would take minutes. */
    #[DataProvider('costly')]
    public function testTheCountOfAnyTextIsFast(string $json): void
    {
        self::assertLessThan(0.5, ProcessorTime::of(static fn() => JsonMembers::exceeds($json, 2000)));
    }

    private static function members(int $count): string
    {
        return implode(',', array_map(static fn(int $i): string => "\"k{$i}\":{$i}", range(1, $count)));
    }

    /** @return array<mixed>|\stdClass|string|int */
    private static function value(int $depth): array|\stdClass|string|int
    {
        $kind = mt_rand(0, 3);
        if ($depth === 0 || $kind === 0) {
            return mt_rand(0, 1) === 0 ? mt_rand(0, 9) : self::text();
        }
        $size = self::SIZES[mt_rand(0, \count(self::SIZES) - 1)];
        $values = [];
        for ($i = 0; $i < $size; ++$i) {
            $value = mt_rand(0, 30) === 0 ? self::value($depth - 1) : $i;
            $kind === 1 ? $values[] = $value : $values[self::text() . "#{$i}"] = $value;
        }

        return $kind === 1 ? $values : (object) $values;
    }

    private static function text(): string
    {
        $text = '';
        for ($length = mt_rand(0, 4); $length > 0; --$length) {
            $text .= self::ATOMS[mt_rand(0, \count(self::ATOMS) - 1)];
        }

        return $text;
    }

    private static function counted(mixed $value): int
    {
        $members = $value instanceof \stdClass ? \count((array) $value) : 0;
        $count = $members > JsonMembers::MAX_UNCOUNTED_MEMBERS ? $members : 0;
        foreach (\is_array($value) || $value instanceof \stdClass ? (array) $value : [] as $each) {
            $count += self::counted($each);
        }

        return $count;
    }
}
