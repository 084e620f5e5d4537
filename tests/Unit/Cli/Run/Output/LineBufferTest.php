<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Output\LineBuffer;

final class LineBufferTest extends TestCase
{
    public function testOnlyCompleteLinesAreReturnedBeforeTheEnd(): void
    {
        $buffer = new LineBuffer(null);

        self::assertSame(
            ['', "ab\ncd\n", '', "ef\n", 'g', '', 10],
            [
                $buffer->add('a'), $buffer->add("b\ncd\ne"), $buffer->add('f'), $buffer->add("\n"),
                $buffer->add('g') . $buffer->end(), $buffer->end(), $buffer->length,
            ],
        );
    }

    public function testAnIncompleteLineIsReturnedIfThereIsNoMemory(): void
    {
        $buffer = new LineBuffer(null);

        self::assertSame('', $buffer->add('a'));
        self::assertSame(1, $buffer->heldBytes());
        self::assertSame('ab', $buffer->add('b', isFull: true));
        self::assertSame(0, $buffer->heldBytes());
    }

    public function testEachLineHasOneTag(): void
    {
        $buffer = new LineBuffer('t');

        self::assertSame('', $buffer->add('a'));
        self::assertSame("t\tab\nt\t\n", $buffer->add("b\n\nc"));
        self::assertSame("t\tc\n", $buffer->end());
        self::assertSame('', $buffer->end());
    }

    public function testALongLineIsReturnedInPiecesWithOneTag(): void
    {
        $buffer = new LineBuffer('t');
        $piece = str_repeat('x', 3 << 20);

        self::assertSame('', $buffer->add($piece));
        self::assertSame("t\t{$piece}{$piece}", $buffer->add($piece));
        self::assertSame("y\n", $buffer->add("y\n"));
        self::assertSame("t\tz\n", $buffer->add("z\n"));
    }
}
