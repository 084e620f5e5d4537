<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;

/** Each vector has the same verdict however its bytes arrive. */
final class VectorsTest extends TestCase
{
    use EndsInTime;

    /** @return iterable<string, array{Vector}> */
    public static function vectors(): iterable
    {
        foreach (Vectors::all() as $claim => $vector) {
            yield $claim => [$vector];
        }
    }

    #[DataProvider('vectors')]
    public function testWhatArrivesAtOnceHasItsVerdict(Vector $vector): void
    {
        self::assertSame($vector->verdict, Reading::of([$vector->bytes], $vector->limits)->verdict());
    }

    /** With only the first byte, the parser can't parse the head by its regular expression. */
    #[DataProvider('vectors')]
    public function testWhatArrivesByteByByteIsReadTheSame(Vector $vector): void
    {
        self::assertSame(
            Reading::of([$vector->bytes], $vector->limits)->transcript(),
            Reading::of(str_split($vector->bytes), $vector->limits)->transcript(),
        );
    }

    #[DataProvider('vectors')]
    public function testWhatArrivesInTwoPartsIsReadTheSameWhereverItIsSplit(Vector $vector): void
    {
        $whole = Reading::of([$vector->bytes], $vector->limits)->transcript();
        for ($at = 1, $size = \strlen($vector->bytes); $at < $size; ++$at) {
            $parts = [substr($vector->bytes, 0, $at), substr($vector->bytes, $at)];
            self::assertSame($whole, Reading::of($parts, $vector->limits)->transcript(), "Split after {$at} bytes");
        }
    }

    /** The rest of a body is skipped after the response. */
    #[DataProvider('vectors')]
    public function testTheHeadsAreTheSameWithoutReadingBodies(Vector $vector): void
    {
        $taken = Reading::of([$vector->bytes], $vector->limits);
        foreach ([[$vector->bytes], str_split($vector->bytes)] as $pieces) {
            $skipped = Reading::ofHeads($pieces, $vector->limits);
            self::assertSame($taken->heads(\count($taken->requests)), $skipped->heads(\count($taken->requests)));
            self::assertLessThanOrEqual(\count($taken->requests) + 1, \count($skipped->requests));
        }
    }

    public function testThereAreManyAndMostAreMalformed(): void
    {
        $vectors = iterator_to_array(Vectors::all());
        $refused = array_filter($vectors, static fn(Vector $vector): bool => $vector->isRefused());

        self::assertGreaterThanOrEqual(150, \count($refused));
        self::assertGreaterThanOrEqual(100, \count($vectors) - \count($refused));
        self::assertSameSize($vectors, array_unique(array_column($vectors, 'bytes')), 'Two have the same bytes');
    }
}
