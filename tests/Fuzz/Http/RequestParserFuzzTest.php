<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Http;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Tests\Conformance\Http\Vectors\Reading;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Fuzz\Command\Splits;
use Spindle\Tests\Scale;

/** The same bytes give the same requests in any pieces. Valid input is accepted, and other input gets a status. */
final class RequestParserFuzzTest extends TestCase
{
    use EndsInTime;

    public function testValidRequestsAreAcceptedAndSpoiledOnesHaveOneVerdict(): void
    {
        mt_srand(Scale::seed());
        [$refused, $rounds] = [0, 0];
        foreach (Scale::rounds(atLeast: 500) as $_) {
            ++$rounds;
            [$bytes, $verdict] = Pipeline::random();
            if (self::read($bytes, null)->verdict() !== $verdict) {
                self::assertSame($verdict, Reading::of([$bytes])->verdict(), self::shown($bytes));
            }
            $spoiled = Mutator::of($bytes);
            $limits = mt_rand(0, 5) === 0 ? new MessageLimits(mt_rand(1, 40), mt_rand(20, 200), mt_rand(1, 5)) : null;
            $refused += str_starts_with(self::read($spoiled, $limits)->end, 'refused') ? 1 : 0;
        }
        self::assertGreaterThan($rounds / 3, $refused);
        self::assertLessThan($rounds, $refused);
    }

    public function testBytesOfAllKindsAreNoRequest(): void
    {
        mt_srand(Scale::seed());
        $accepted = 0;
        foreach (Scale::rounds(0.5, 500) as $_) {
            $accepted += \count(self::read(Splits::bytes(mt_rand(0, 50)) . "\n", null)->requests);
        }
        self::assertSame(0, $accepted);
    }

    /** Reads the bytes at once and in pieces, with bodies read and skipped. */
    private static function read(string $bytes, ?MessageLimits $limits): Reading
    {
        $whole = Reading::of([$bytes], $limits);
        $count = \count($whole->requests);
        $pieces = Splits::random($bytes, [1, 3, 20, 20, 200, 200, 2000][mt_rand(0, 6)]);
        $parts = Reading::of($pieces, $limits);
        if ($whole->transcript() !== $parts->transcript()) {
            self::assertSame($whole->transcript(), $parts->transcript(), self::shown(...$pieces));
        }
        $heads = Reading::ofHeads(mt_rand(0, 1) === 0 ? [$bytes] : $pieces, $limits);
        if ($whole->heads($count) !== $heads->heads($count)) {
            self::assertSame($whole->heads($count), $heads->heads($count), self::shown($bytes));
        }

        return $whole;
    }

    private static function shown(string ...$pieces): string
    {
        return implode(
            ' | ',
            array_map(static fn(string $piece): string => addcslashes($piece, "\0..\37\177..\377"), $pieces),
        );
    }
}
