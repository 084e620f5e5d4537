<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\ChunkDecoder;
use Spindle\Http\Internal\Message\MessageLimits;

final class ChunkDecoderTest extends TestCase
{
    public function testBytesAfterTheTrailerSectionAreNotConsumed(): void
    {
        $decoder = new ChunkDecoder(new MessageLimits());
        $buffer = "before5\r\nhello\r\n0\r\nX: y\r\n\r\nafter";
        $offset = 6;

        self::assertSame('hello', $decoder->decode($buffer, $offset));
        self::assertSame(
            [true, "X: y\r\n", 'after'],
            [$decoder->hasEnded, $decoder->trailers, substr($buffer, $offset)],
        );
        self::assertSame('', $decoder->decode($buffer, $offset));
        self::assertSame('after', substr($buffer, $offset));
    }

    public function testAnIncompleteLineIsNotConsumed(): void
    {
        $decoder = new ChunkDecoder(new MessageLimits());
        foreach ([
            "5;a\r" => '',
            "5;a\r\nhel" => 'hel',
            "lo\r" => 'lo',
            "\r\n0\r\nX" => '',
            "X: y\r" => '',
        ] as $buffer => $body) {
            $offset = 0;
            self::assertSame($body, $decoder->decode($buffer, $offset));
            self::assertSame(
                (string) preg_replace('/.*\n|^(hel|lo)(?=\r?$)|(hel)$/s', '', $buffer),
                substr($buffer, $offset),
            );
            self::assertFalse($decoder->hasEnded);
        }
    }

    /** The first byte too many shows that a chunk has the wrong size. */
    public function testDataIsRefusedAtTheFirstExcessByte(): void
    {
        foreach (["1\r\nxy", "1\r\nx\n", "1\r\nx\ry"] as $buffer) {
            $offset = 0;
            try {
                (new ChunkDecoder(new MessageLimits()))->decode($buffer, $offset);
                self::fail('It is accepted');
            } catch (BadMessageException $refusal) {
                self::assertSame(400, $refusal->status);
            }
        }
    }

    public function testASizeOfSixtyBitsIsAccepted(): void
    {
        $decoder = new ChunkDecoder(new MessageLimits());
        $buffer = "FFFFFFFFFFFFFFF\r\n" . str_repeat('x', 100);
        $offset = 0;

        self::assertSame(str_repeat('x', 100), $decoder->decode($buffer, $offset));
        self::assertFalse($decoder->hasEnded);
    }
}
