<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Output\RateHistory;

final class RateHistoryTest extends TestCase
{
    public function testASparklineHasABarForEachSecond(): void
    {
        $history = new RateHistory();
        foreach ([1 => 0, 2 => 4, 3 => 12, 4 => 13] as $elapsed => $done) {
            $history->record((float) $elapsed, $done);
        }

        self::assertSame('▁▅█▂', $history->sparkline(10, true));
        self::assertSame('█▂', $history->sparkline(2, true));
        self::assertSame('_=#.', $history->sparkline(10, false));
        self::assertSame('', (new RateHistory())->sparkline(10, true));
    }

    public function testJobsOfALongPauseAreSharedAmongItsSeconds(): void
    {
        $history = new RateHistory();
        $history->record(1.0, 2);
        $history->record(1.5, 3);
        $history->record(4.2, 8);

        self::assertSame('████', $history->sparkline(10, true));
    }

    public function testALongRunFitsByMergingSeconds(): void
    {
        $history = new RateHistory();
        for ($second = 1; $second <= 1000; ++$second) {
            $history->record((float) $second, 3 * $second);
        }

        self::assertLessThanOrEqual(120, mb_strlen($history->sparkline(1000, true)));
        self::assertSame('███', $history->sparkline(3, true));
        self::assertSame(0.0, round((float) $history->spread(50.0), 3));
    }

    public function testTheSpreadOfTheRemainingTimeFollowsFromTheVariationOfTheRate(): void
    {
        $history = new RateHistory();
        $history->record(2.0, 20);
        self::assertNull($history->spread(10.0), 'too few seconds');

        $done = 20;
        foreach ([14, 6, 14, 6, 10, 10] as $i => $count) {
            $done += $count;
            $history->record(3.0 + $i, $done);
        }
        // Mean 10, standard deviation sqrt(64 / 7); 8 past and 16 future seconds.
        self::assertEqualsWithDelta(sqrt(64 / 7) / 10 * sqrt(16 + 16 ** 2 / 8), $history->spread(16.0), 1e-9);
    }
}
