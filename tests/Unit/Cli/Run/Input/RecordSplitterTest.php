<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Input;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Input\RecordSplitter;

final class RecordSplitterTest extends TestCase
{
    /** @return iterable<string, array{string, list<string>}> */
    public static function inputs(): iterable
    {
        yield 'nothing' => ['', []];
        yield 'a record' => ["a\n", ['a']];
        yield 'no separator at the end' => ["a\nb", ['a', 'b']];
        yield 'empty records' => ["\n\na\n\n", ['', '', 'a', '']];
        yield 'other white space stays' => [" a \r\n\tb\n", [" a \r", "\tb"]];
        yield 'NUL stays' => ["a\0b\n", ["a\0b"]];
    }

    /** @param list<string> $expected */
    #[DataProvider('inputs')]
    public function testRecordsAreTheSameHoweverTheBytesCome(string $bytes, array $expected): void
    {
        foreach ([1, 2, 3, 100] as $size) {
            $splitter = new RecordSplitter("\n");
            $records = [];
            foreach ($bytes === '' ? [] : str_split($bytes, $size) as $piece) {
                array_push($records, ...$splitter->push($piece));
            }

            self::assertSame($expected, [...$records, ...$splitter->end()], "In pieces of {$size}");
        }
    }

    #[DataProvider('inputs')]
    public function testTextHasTheRecordsWithTheirSeparators(string $bytes): void
    {
        foreach ([1, 2, 3, 100] as $size) {
            $splitter = new RecordSplitter("\n");
            $text = '';
            foreach ($bytes === '' ? [] : str_split($bytes, $size) as $piece) {
                $complete = $splitter->pushText($piece);
                self::assertMatchesRegularExpression('/\n\z|^\z/', $complete);
                $text .= $complete;
            }

            self::assertSame($bytes, $text . implode('', $splitter->end()), "In pieces of {$size}");
        }
    }

    public function testAnotherSeparatorLetsLineFeedsBePartOfARecord(): void
    {
        $splitter = new RecordSplitter("\0");

        self::assertSame(["a\nb"], $splitter->push("a\nb\0c\n"));
        self::assertSame(["c\n"], $splitter->end());
    }

    public function testARecordThatNeverEndsIsNoticed(): void
    {
        $splitter = new RecordSplitter("\n");
        $splitter->push(str_repeat('x', RecordSplitter::MAX_RECORD_BYTES));
        self::assertFalse($splitter->isTooLong());

        $splitter->push('x');

        self::assertTrue($splitter->isTooLong());
    }
}
