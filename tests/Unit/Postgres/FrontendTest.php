<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Native\Frontend;

/** Compares messages with PostgreSQL's documentation. */
final class FrontendTest extends TestCase
{
    public function testMessagesHaveTheirTypeAndLength(): void
    {
        self::assertSame("P\0\0\0\x0Fs\0SELECT\0\0\0", Frontend::parse('s', 'SELECT'));
        self::assertSame("D\0\0\0\7Ss\0", Frontend::describe('s'));
        self::assertSame("C\0\0\0\7Ss\0", Frontend::closeStatement('s'));
        self::assertSame("C\0\0\0\7Pp\0", Frontend::closePortal('p'));
        self::assertSame("E\0\0\0\x0Ap\0\0\0\1\0", Frontend::execute('p', 256));
        self::assertSame("Q\0\0\0\x0BSELECT\0", Frontend::query('SELECT'));
        self::assertSame("d\0\0\0\x06a\n", Frontend::copyData("a\n"));
        self::assertSame("f\0\0\0\x09gone\0", Frontend::copyFail('gone'));
    }

    public function testMessagesThatAreAlwaysTheSameAreConstants(): void
    {
        foreach (['EXECUTE' => "E\0\0\0\x09\0\0\0\0\0", 'SYNC' => "S\0\0\0\4", 'TERMINATE' => "X\0\0\0\4", 'COPY_DONE' => "c\0\0\0\4"] as $name => $bytes) {
            self::assertSame($bytes, \constant(Frontend::class . "::{$name}"));
        }
    }

    public function testABindHasItsValuesByTheirLengths(): void
    {
        $parts = Frontend::bind("p\0s\0\0\0", ['ab', null, ''], "\0\0");

        self::assertSame(["B\0\0\0\x1Cp\0s\0\0\0" . "\0\3" . "\0\0\0\2ab" . "\xFF\xFF\xFF\xFF" . "\0\0\0\0" . "\0\0"], $parts);
        self::assertSame(["B\0\0\0\x0C\0\0\0\0\0\0\0\0"], Frontend::bind("\0\0\0\0", [], "\0\0"));
    }

    public function testALargeValueIsNotCopiedIntoItsMessage(): void
    {
        $large = str_repeat('x', 1 << 20);
        $parts = Frontend::bind("\0s\0\0\0", ['a', $large, 'b', $large], "\0\0");
        $message = implode('', $parts);
        /** @var array{1: int} $length */
        $length = unpack('N', $message, 1);

        self::assertSame(\strlen($message) - 1, $length[1]);
        self::assertSame([$large, $large], array_values(array_filter($parts, static fn(string $part): bool => $part === $large)));
        self::assertSame('B' . pack('N', $length[1]) . "\0s\0\0\0\0\4" . "\0\0\0\1a" . pack('N', 1 << 20) . $large . "\0\0\0\1b" . pack('N', 1 << 20) . $large . "\0\0", $message);
    }

    public function testAsManyValuesAsTravelAreCounted(): void
    {
        self::assertStringContainsString("\0\0\0\0\xFF\xFF\0\0\0\1x", implode('', Frontend::bind("\0\0\0\0", array_fill(0, 0xFFFF, 'x'), "\0\0")));
    }
}
