<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\TerminalText;

final class TerminalTextTest extends TestCase
{
    /** @return iterable<string, array{string, int, string}> */
    public static function texts(): iterable
    {
        yield 'short' => ['abc', 3, 'abc'];
        yield 'long' => ['abcd', 3, 'ab…'];
        yield 'control characters' => ["a\e[1m\n", 20, 'a\033[1m\n'];
        yield 'wide characters' => ['日本語', 6, '日本語'];
        yield 'a wide character that does not fit' => ['日本語', 4, '日…'];
        yield 'a character is not cut' => [str_repeat('é', 1000), 4, 'ééé…'];
        yield 'invalid UTF-8' => ["\xff\xfe", 20, '\377\376'];
        yield 'one column' => ['ab', 1, '…'];
        yield 'no column' => ['ab', 0, ''];
    }

    #[DataProvider('texts')]
    public function testATextIsShortenedToColumns(string $text, int $columns, string $expected): void
    {
        self::assertSame($expected, TerminalText::fit($text, $columns));
    }
}
