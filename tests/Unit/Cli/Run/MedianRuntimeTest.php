<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Cli\Internal\Run\MedianRuntime;
use Spindle\Tests\Scale;

final class MedianRuntimeTest extends TestCase
{
    public function testTheResultIsWithinOnePerCentOfTheMedian(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        for ($round = 0; $round < 20; ++$round) {
            $median = new MedianRuntime();
            $runtimes = [];
            for ($i = 2 * $random->getInt(0, 200); $i >= 0; --$i) {
                $runtimes[] = $runtime = 10 ** ($random->getInt(-4000, 4000) / 1000);
                $median->add($runtime);
            }
            sort($runtimes);
            $expected = $runtimes[intdiv(\count($runtimes), 2)];

            self::assertEqualsWithDelta(1.0, $median->seconds() / $expected, 0.01);
            self::assertSame(\count($runtimes), $median->count);
        }
    }

    public function testARuntimeOfZeroHasAMedian(): void
    {
        $median = new MedianRuntime();
        self::assertSame(0.0, $median->seconds());

        $median->add(0.0);

        self::assertEqualsWithDelta(1e-4, $median->seconds(), 1e-6);
    }
}
