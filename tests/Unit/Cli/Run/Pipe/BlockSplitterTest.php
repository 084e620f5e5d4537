<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Pipe;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
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

    #[TestWith([new SeparatorEnds("\n", ''), "a\n"])]
    #[TestWith([new SeparatorEnds("\n\n", ''), "a\n\n"])]
    #[TestWith([new SeparatorEnds('', '>'), 'ab>'])]
    #[TestWith([new SeparatorEnds('aa', 'a'), 'aaab'])]
    #[TestWith([new SeparatorEnds('', ''), 'ab'])]
    public function testABlockInPiecesEndsWhereAWholeBlockEnds(SeparatorEnds $ends, string $characters): void
    {
        for ($i = 0; $i < 300; ++$i) {
            $input = '';
            for ($size = mt_rand(0, 60); $size > 0; --$size) {
                $input .= $characters[mt_rand(0, \strlen($characters) - 1)];
            }
            $blockBytes = mt_rand(1, 20);
            $parts = str_split($input, mt_rand(1, 30));
            $inPieces = self::blocks(new BlockSplitter($ends, $blockBytes, pieceBytes: mt_rand(1, 5)), $parts);

            $whole = self::blocks(new BlockSplitter($ends, $blockBytes), [$input]);
            self::assertSame($whole, $inPieces, json_encode([$parts, $blockBytes], \JSON_THROW_ON_ERROR));
        }
    }

    public function testAPieceIsYieldedBeforeItsBlockIsComplete(): void
    {
        $splitter = new BlockSplitter(new SeparatorEnds("\n", ''), 100, pieceBytes: 4);

        self::assertSame(["a\nb"], iterator_to_array($splitter->push("a\nb\ncd"), false));
    }

    /**
     * @param list<string> $parts
     *
     * @return list<string>
     */
    private static function blocks(BlockSplitter $splitter, array $parts): array
    {
        $blocks = [];
        $block = '';
        $generators = [...array_map($splitter->push(...), $parts), $splitter->end()];
        foreach ($generators as $generator) {
            foreach ($generator as $isLast => $piece) {
                $block .= $piece;
                if ($isLast) {
                    $blocks[] = $block;
                    $block = '';
                }
            }
        }

        return $blocks;
    }

    public function testASeparatorCountsOnlyWithinTheBlock(): void
    {
        $ends = new SeparatorEnds("\r\n", '');

        self::assertSame(0, $ends->last("ab\r\n", 0, 3));
        self::assertSame(4, $ends->last("ab\r\nc", 0, 4));
        self::assertSame(2, $ends->last("\r\nab", 2, 4));
        self::assertSame(2, (new SeparatorEnds("\n\n", ''))->last("\n\n\nb", 2, 4));
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
