<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Launcher;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\Process\WaitingJobs;
use Spindle\Tests\ProcessorTime;

final class WaitingJobsTest extends TestCase
{
    public function testACancelledJobDoesNotCostItsLaneTheNextTurn(): void
    {
        $jobs = new WaitingJobs();
        foreach ([11 => 1, 12 => 1, 21 => 2, 31 => 3] as $id => $lane) {
            $jobs->add((object) ['id' => $id, 'lane' => $lane]);
        }

        self::assertTrue($jobs->remove(11));
        self::assertFalse($jobs->remove(11));
        self::assertTrue($jobs->remove(31));
        self::assertSame([12, 21], array_keys($jobs->all()));
        self::assertSame([12, 21], [$jobs->next()->id, $jobs->next()->id]);
        self::assertTrue($jobs->isEmpty());
    }

    /** A search past all removed jobs in each call would take many seconds. */
    #[TestWith([1])]
    #[TestWith([10])]
    #[TestWith([80_000])]
    public function testThousandsOfJobsAreTakenInLinearTime(int $lanes): void
    {
        $jobs = new WaitingJobs();
        for ($id = 0; $id < 80_000; ++$id) {
            $jobs->add((object) ['id' => $id, 'lane' => $id % $lanes]);
        }
        $take = static function () use ($jobs): void {
            for ($id = 0; !$jobs->isEmpty(); ++$id) {
                $oldest = $jobs->oldest();
                $id % 3 === 0 ? $jobs->remove((int) $oldest) : $jobs->next();
            }
        };

        self::assertLessThan(1.0, ProcessorTime::of($take));
    }

    #[TestWith([1])]
    #[TestWith([80_000])]
    public function testJobsAfterALargeQueueAreTakenInConstantTime(int $lanes): void
    {
        $jobs = new WaitingJobs();
        for ($id = 0; $id < 80_000; ++$id) {
            $jobs->add((object) ['id' => $id, 'lane' => $id % $lanes]);
        }
        while (!$jobs->isEmpty()) {
            $jobs->next();
        }
        $addAndTake = static function () use ($jobs): void {
            for ($id = 80_000; $id < 130_000; ++$id) {
                $jobs->add((object) ['id' => $id, 'lane' => $id]);
                $jobs->next();
            }
        };

        self::assertLessThan(1.0, ProcessorTime::of($addAndTake));
    }
}
