<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Pipe;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Pipe\BlockSplitter;
use Spindle\Cli\Internal\Run\Pipe\GroupEnds;
use Spindle\Cli\Internal\Run\Pipe\PatternEnds;
use Spindle\Cli\Internal\Run\Pipe\RecordEnds;
use Spindle\Cli\Internal\Run\Pipe\SeparatorEnds;
use Spindle\Cli\Internal\UsageException;

final class BlockSplitterTest extends TestCase
{
    private const INPUT = "one\n--two\n--\n\nthree four five\n--six--\nseven\n--eight";

    /** @return iterable<string, array{RecordEnds, int, int, bool, list<string>}> */
    public static function forms(): iterable
    {
        $lines = new SeparatorEnds("\n", '');
        yield 'lines' => [$lines, 12, 0, false, [
            "one\n--two\n", "--\n\n", "three four five\n", "--six--\nseven\n", '--eight',
        ]];
        yield 'two lines' => [$lines, 12, 2, true, [
            "one\n--two\n", "--\n\n", "three four five\n--six--\n", "seven\n--eight",
        ]];
        yield 'pairs of lines' => [$lines, 26, 2, false, [
            "one\n--two\n--\n\n", "three four five\n--six--\n", "seven\n--eight",
        ]];
        yield 'a text at the start' => [new SeparatorEnds('', '--'), 20, 1, true, [
            "one\n", "--two\n", "--\n\nthree four five\n", '--six', "--\nseven\n", '--eight',
        ]];
        yield 'two texts' => [new SeparatorEnds("\n", '--'), 20, 1, true, [
            "one\n", "--two\n", "--\n\nthree four five\n", "--six--\nseven\n", '--eight',
        ]];
        yield 'groups' => [new GroupEnds('-', 1), 12, 1, true, [
            "one\n", "--two\n--\n\n", "three four five\n", "--six--\n", "seven\n--eight",
        ]];
        yield 'bytes' => [new SeparatorEnds('', ''), 20, 0, false, str_split(self::INPUT, 20)];
        yield 'patterns' => [new PatternEnds('\n+', '[-a-z]'), 24, 1, true, [
            "one\n", "--two\n", "--\n\n", "three four five\n", "--six--\n", "seven\n", '--eight',
        ]];
    }

    /** @param list<string> $expected */
    #[DataProvider('forms')]
    public function testBlocksAreTheSameHoweverTheBytesCome(
        RecordEnds $ends,
        int $blockBytes,
        int $groupSize,
        bool $isOneGroup,
        array $expected,
    ): void {
        foreach ([1, 2, 3, 7, 100] as $size) {
            $splitter = new BlockSplitter($ends, $blockBytes, $groupSize, $isOneGroup);
            $blocks = [];
            foreach (str_split(self::INPUT, $size) as $piece) {
                array_push($blocks, ...iterator_to_array($splitter->push($piece), false));
            }
            array_push($blocks, ...iterator_to_array($splitter->end(), false));

            self::assertSame($expected, $blocks, "In pieces of {$size}");
        }
    }

    public function testASeparatorCountsOnlyWithinTheBlock(): void
    {
        $ends = new SeparatorEnds("\r\n", '');

        self::assertSame(0, $ends->last("ab\r\n", 0, 3));
        self::assertSame(4, $ends->last("ab\r\nc", 0, 4));
        self::assertSame(2, $ends->last("\r\nab", 2, 4));
        self::assertNull($ends->next("ab\r\n", 0, 3, 1));
        self::assertSame(4, $ends->next("ab\r\n", 0, 4, 1));
    }

    public function testABackslashBeforeAKIsOrdinaryText(): void
    {
        self::assertSame(3, (new PatternEnds('\\\\K', ''))->next('a\Kb', 0, 4, 1));
    }

    public function testAPatternThatEndsARecordAtItsStartIsRefused(): void
    {
        $this->expectException(UsageException::class);
        $this->expectExceptionMessage('option --regexp: a record is empty; leave out (*ACCEPT)');
        (new PatternEnds('(*ACCEPT)', ''))->next("a\nb\n", 0, 4, 1);
    }

    public function testARecordBeginsAfterItsOwnStart(): void
    {
        $ends = new SeparatorEnds('', '>');

        self::assertSame(2, $ends->next('>a>b', 0, 4, 1));
        self::assertNull($ends->next('>b', 0, 2, 1));
        self::assertSame(4, $ends->next('>a>b>c', 0, 6, 2));
        self::assertSame(0, $ends->last('>b', 0, 2));
    }
}
