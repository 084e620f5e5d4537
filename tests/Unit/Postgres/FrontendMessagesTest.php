<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Protocol\FrontendMessages;

/** Compares messages with PostgreSQL's documentation. */
final class FrontendMessagesTest extends TestCase
{
    public function testMessagesHaveTheirTypeAndLength(): void
    {
        self::assertSame("P\0\0\0\x0Fs\0SELECT\0\0\0", FrontendMessages::parse('s', 'SELECT'));
        self::assertSame("D\0\0\0\7Ss\0", FrontendMessages::describe('s'));
        self::assertSame("C\0\0\0\7Ss\0", FrontendMessages::closeStatement('s'));
        self::assertSame("C\0\0\0\7Pp\0", FrontendMessages::closePortal('p'));
        self::assertSame("E\0\0\0\x0Ap\0\0\0\1\0", FrontendMessages::execute('p', 256));
        self::assertSame("Q\0\0\0\x0BSELECT\0", FrontendMessages::query('SELECT'));
        self::assertSame("d\0\0\0\x06a\n", FrontendMessages::copyData("a\n"));
        self::assertSame("f\0\0\0\x09gone\0", FrontendMessages::copyFail('gone'));
    }

    public function testMessagesThatAreAlwaysTheSameAreConstants(): void
    {
        foreach ([
            'EXECUTE' => "E\0\0\0\x09\0\0\0\0\0",
            'SYNC' => "S\0\0\0\4",
            'TERMINATE' => "X\0\0\0\4",
            'COPY_DONE' => "c\0\0\0\4",
        ] as $name => $bytes) {
            self::assertSame($bytes, \constant(FrontendMessages::class . "::{$name}"));
        }
    }

    public function testBindContainsTheLengthOfEachValue(): void
    {
        $parts = FrontendMessages::bind("p\0s\0\0\0", ['ab', null, ''], "\0\0");

        self::assertSame(
            ["B\0\0\0\x1Cp\0s\0\0\0" . "\0\3" . "\0\0\0\2ab" . "\xFF\xFF\xFF\xFF" . "\0\0\0\0" . "\0\0"],
            $parts,
        );
        self::assertSame(["B\0\0\0\x0C\0\0\0\0\0\0\0\0"], FrontendMessages::bind("\0\0\0\0", [], "\0\0"));
    }

    public function testALargeValueIsNotCopiedIntoItsMessage(): void
    {
        $large = str_repeat('x', 1 << 20);
        $parts = FrontendMessages::bind("\0s\0\0\0", ['a', $large, 'b', $large], "\0\0");
        $message = implode('', $parts);
        /** @var array{1: int} $length */
        $length = unpack('N', $message, 1);

        self::assertSame(\strlen($message) - 1, $length[1]);
        self::assertSame(
            [$large, $large],
            array_values(array_filter($parts, static fn(string $part): bool => $part === $large)),
        );
        self::assertSame(
            'B'
                . pack('N', $length[1])
                . "\0s\0\0\0\0\4"
                . "\0\0\0\1a"
                . pack('N', 1 << 20)
                . $large
                . "\0\0\0\1b"
                . pack('N', 1 << 20)
                . $large
                . "\0\0",
            $message,
        );
    }

    public function testTheLargestNumberOfValuesIsEncoded(): void
    {
        self::assertStringContainsString(
            "\0\0\0\0\xFF\xFF\0\0\0\1x",
            implode('', FrontendMessages::bind("\0\0\0\0", array_fill(0, 0xFFFF, 'x'), "\0\0")),
        );
    }
}
