<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

final class RoundsTest extends TestCase
{
    public function testEverySecondRoundGoesBack(): void
    {
        $series = [Series::constant('A', 1.0), Series::constant('B', 1.0), Series::constant('C', 1.0)];
        $names = static fn(int $round): array => array_map(
            static fn(Series $one): string => $one->label,
            Rounds::order($series, $round),
        );

        self::assertSame([['A', 'B', 'C'], ['C', 'B', 'A'], ['A', 'B', 'C']], array_map($names, [1, 2, 3]));
    }
}
