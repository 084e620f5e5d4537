<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

final class TallyTest extends TestCase
{
    public function testEveryResultOnceWithItsOwnOutputIsRight(): void
    {
        $tally = self::tally([1, 0, "1\n"], [0, 0, "0\n"]);

        self::assertTrue($tally->isRight());
    }

    public function testALostResultIsNotRight(): void
    {
        self::assertFalse(self::tally([0, 0, "0\n"])->isRight());
    }

    public function testALostExitCodeIsNotRight(): void
    {
        self::assertFalse(self::tally([0, 0, "0\n"], [1, -1, "1\n"])->isRight());
    }

    public function testAnothersOutputIsNotRight(): void
    {
        self::assertFalse(self::tally([0, 0, "1\n"], [1, 0, "1\n"])->isRight());
    }

    public function testTheSameCommandTwiceIsNotRight(): void
    {
        self::assertFalse(self::tally([0, 0, "0\n"], [0, 0, "0\n"])->isRight());
    }

    public function testOfMixedOutputTheLengthIsCompared(): void
    {
        [$right, $wrong] = [self::tally(), self::tally()];
        $right->allResults(4, 0);
        $wrong->allResults(3, 0);

        self::assertSame([true, false], [$right->isRight(), $wrong->isRight()]);
    }

    public function testAContestantsOwnClockCounts(): void
    {
        $tally = self::tally();
        $tally->setSeconds(0.5);

        self::assertSame(4.0, $tally->toArray()['rate']);
    }

    /** @param array{int, int, string} ...$results */
    private static function tally(array ...$results): Tally
    {
        $tally = new Tally(Workload::echoes(2));
        foreach ($results as $result) {
            $tally->result(...$result);
        }

        return $tally;
    }
}
