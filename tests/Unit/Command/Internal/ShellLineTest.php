<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command\Internal;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Internal\ShellLine;

final class ShellLineTest extends TestCase
{
    /** @return iterable<string, array{string, list<string>}> */
    public static function simpleLines(): iterable
    {
        yield 'one word' => ['ls', ['ls']];
        yield 'words' => ['ls -l /tmp', ['ls', '-l', '/tmp']];
        yield 'blanks and tabs' => [" \tls\t -l  ", ['ls', '-l']];
        yield 'quoted words' => ["cat 'a b' \"c  d\"", ['cat', 'a b', 'c  d']];
        yield 'words of several parts' => ["cat a'b c'd\"e f\"", ['cat', 'ab cde f']];
        yield 'empty words' => ["cat '' \"\" ''\"\"", ['cat', '', '', '']];
        yield 'quotes in quotes' => ["cat \"it's\" 'a \"b\"'", ['cat', "it's", 'a "b"']];
        yield 'what quotes protect' => [
            "cat '*?[]{}~#\$`\\!&|;<>()' \"*?~#!&|;<>()'\"",
            ['cat', '*?[]{}~#$`\\!&|;<>()', "*?~#!&|;<>()'"],
        ];
        yield 'line ends in quotes' => ["cat 'a\nb'", ['cat', "a\nb"]];
        yield 'bytes in quotes' => ["cat '\xFF\xC3\xA9'", ['cat', "\xFF\xC3\xA9"]];
        yield 'an assignment that is an argument' => ['env A=b cat', ['env', 'A=b', 'cat']];
        yield 'a path' => ['./a/b+c@d', ['./a/b+c@d']];
        yield 'a long line' => ['cat ' . str_repeat('x', 1_000_000), ['cat', str_repeat('x', 1_000_000)]];
    }

    /** @param list<string> $words */
    #[DataProvider('simpleLines')]
    public function testALineThatAShellWouldOnlySplitIsSplit(string $line, array $words): void
    {
        self::assertTrue(ShellLine::split($line) === $words);
    }

    /** @return iterable<string, array{string}> */
    public static function lines(): iterable
    {
        foreach (str_split('|&;<>()$`\\*?[]#~!{}^' . "\n\r\v\f\0\x7F\xFF") as $byte) {
            yield 'byte ' . bin2hex($byte) => ["cat a{$byte}b"];
        }
        foreach ([
            '',
            ' ',
            "\t",
            'A=b',
            'A=b cat',
            'A= cat',
            '1',
            '12 a',
            '%1',
            '-x',
            '=a',
            ',a',
            ':',
            '.',
            '. a',
            '""',
            "'' a",
            '" " a',
            '"a b"',
            'ünï',
        ] as $line) {
            yield "line {$line}" => [$line];
        }
        foreach ([
            'cd',
            'exit',
            'echo',
            'test',
            'if',
            'then',
            'for',
            'while',
            'case',
            'in',
            'do',
            'done',
            'exec',
            'eval',
            'export',
            'set',
            'unset',
            'trap',
            'time',
            'type',
            'ulimit',
            'kill',
            'true',
            'false',
            'printf',
            'pwd',
            'read',
            'wait',
            'command',
            'local',
            'function',
            'select',
        ] as $word) {
            yield "word {$word}" => ["{$word} a"];
            yield "quoted word {$word}" => ["'{$word}' a"];
        }
        yield 'an open quote' => ["cat 'a"];
        yield 'another open quote' => ['cat "a'];
        yield 'an expansion in quotes' => ['cat "$HOME"'];
        yield 'a command in quotes' => ['cat "`ls`"'];
        yield 'a backslash in quotes' => ['cat "a\\"'];
        yield 'a tilde in an assignment' => ['env A=~'];
    }

    #[DataProvider('lines')]
    public function testEverythingElseIsLeftToTheShell(string $line): void
    {
        self::assertNull(ShellLine::split($line));
    }
}
