<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\VirtualTime;
use Spindle\Worker\ResultBudget;

use function Amp\delay;

final class ResultBudgetTest extends TestCase
{
    use VirtualTime;

    /** @var list<string> */
    private array $admitted = [];

    public function testReservationsAreGrantedInOrderWhenBytesAreReleased(): void
    {
        $budget = new ResultBudget(10);
        self::assertTrue($budget->reserve(6, $this->admitted('first')));
        self::assertFalse($budget->reserve(5, $this->admitted('second')));
        self::assertFalse($budget->reserve(1, $this->admitted('third')));
        $budget->release(6);

        self::assertSame(['second', 'third'], $this->admitted);
        self::assertFalse($budget->isFull());
        $budget->forceAcquire(4);
        self::assertTrue($budget->isFull());
    }

    public function testAReservationAboveTheBudgetIsGrantedAlone(): void
    {
        $budget = new ResultBudget(10);
        self::assertTrue($budget->reserve(100, $this->admitted('large')));
        self::assertFalse($budget->reserve(1, $this->admitted('small')));
        $budget->release(100);

        self::assertSame(['small'], $this->admitted);
    }

    public function testAReservationThatIsNoLongerNeededOccupiesNoBytes(): void
    {
        $budget = new ResultBudget(10);
        $budget->forceAcquire(10);
        self::assertFalse($budget->reserve(10, static fn(): bool => false));
        self::assertFalse($budget->reserve(10, $this->admitted('next')));
        $budget->release(10);

        self::assertSame(['next'], $this->admitted);
    }

    public function testAWorkerThatNeverReleasesItsReservationDoesNotStopOthers(): void
    {
        $budget = new ResultBudget(10);
        $budget->forceAcquire(10);
        self::assertFalse($budget->reserve(10, $this->admitted('one')));
        self::assertFalse($budget->reserve(10, $this->admitted('two')));
        delay(6.0);
        self::assertSame(['one'], $this->admitted);
        delay(5.0);

        self::assertSame(['one', 'two'], $this->admitted);
    }

    public function testReservationsThatAreNoLongerNeededDelayNoOther(): void
    {
        $budget = new ResultBudget(100);
        $budget->forceAcquire(50);
        for ($i = 0; $i < 3; ++$i) {
            self::assertFalse($budget->reserve(80, static fn(): bool => false));
        }
        self::assertFalse($budget->reserve(10, $this->admitted('one')));
        self::assertFalse($budget->reserve(40, $this->admitted('two')));
        self::assertFalse($budget->reserve(1, $this->admitted('three')));
        delay(6.0);

        self::assertSame(['one', 'two'], $this->admitted);
    }

    public function testAWithdrawnReservationDelaysNoOther(): void
    {
        $budget = new ResultBudget(100);
        $budget->forceAcquire(50);
        $withdrawn = $this->admitted('withdrawn');
        self::assertFalse($budget->reserve(80, $withdrawn));
        self::assertFalse($budget->reserve(10, $this->admitted('next')));
        self::assertFalse($budget->reserve(80, $this->admitted('last')));
        $budget->withdraw($withdrawn);

        self::assertSame(['next'], $this->admitted);
        $budget->release(50);

        self::assertSame(['next', 'last'], $this->admitted);
    }

    /** @return \Closure(): bool */
    private function admitted(string $name): \Closure
    {
        return function () use ($name): bool {
            $this->admitted[] = $name;

            return true;
        };
    }
}
