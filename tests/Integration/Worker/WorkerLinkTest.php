<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Eventually;
use Spindle\Worker\Internal\WorkerLink;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\ResultBudget;

final class WorkerLinkTest extends TestCase
{
    #[TestWith(['close'])]
    #[TestWith(['readAll'])]
    public function testALinkThatEndsWithdrawsItsReservation(string $how): void
    {
        $budget = new ResultBudget(1 << 20);
        $budget->forceAcquire(1 << 19);
        $ends = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        self::assertIsArray($ends);
        $link = new WorkerLink($ends[0], 4 << 20);
        $link->setBudget($budget);
        $frame = WorkerProtocol::frame(WorkerProtocol::RESULTS, 1, str_repeat('x', 1 << 20));
        fwrite($ends[1], substr($frame, 0, 100_000)); // more than the link reads without a reservation
        /** @var \ArrayObject<int, int> $granted */
        $granted = new \ArrayObject();
        $later = static function () use ($granted): bool {
            $granted[] = 1;

            return true;
        };
        Eventually::holds(static function () use ($budget, $later): bool {
            $isGranted = $budget->reserve(1, $later);
            if ($isGranted) {
                $budget->release(1);
            }

            return !$isGranted;
        }, 'the link waits for the budget');

        self::assertCount(0, $granted);
        $how === 'close' ? $link->close() : $link->readAll();

        self::assertCount(1, $granted);
        $link->close();
    }
}
