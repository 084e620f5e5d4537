<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Output\LineTag;

final class LineTagTest extends TestCase
{
    /** @return iterable<string, array{string, string}> */
    public static function outputs(): iterable
    {
        yield 'nothing' => ['', ''];
        yield 'a line' => ["a\n", "t\ta\n"];
        yield 'lines' => ["a\nb\n", "t\ta\nt\tb\n"];
        yield 'a last line without an end' => ["a\nb", "t\ta\nt\tb\n"];
        yield 'empty lines' => ["\n\na", "t\t\nt\t\nt\ta\n"];
    }

    public function testAPieceOfItsSizeIsNoLargerWithTagsThanTold(): void
    {
        $tag = new LineTag(str_repeat('t', 1_000));

        self::assertLessThanOrEqual(100_000, \strlen($tag->piece(str_repeat("\n", $tag->maxPieceBytes(100_000)))));
        self::assertSame(1, $tag->maxPieceBytes(10));
    }

    #[DataProvider('outputs')]
    public function testEachLineHasTheTagHoweverTheOutputComes(string $output, string $expected): void
    {
        foreach ([1, 2, 100] as $size) {
            $tag = new LineTag('t');
            $tagged = '';
            foreach ($output === '' ? [] : str_split($output, $size) as $piece) {
                $tagged .= $tag->piece($piece);
            }

            self::assertSame($expected, $tagged . $tag->end(), "In pieces of {$size}");
        }
    }
}
