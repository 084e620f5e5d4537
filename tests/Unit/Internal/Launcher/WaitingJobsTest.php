<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Launcher;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\Process\WaitingJobs;

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
}
