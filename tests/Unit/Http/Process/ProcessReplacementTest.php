<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Process\ProcessReplacement;
use Spindle\Http\Internal\Process\ProcessRole;
use Spindle\Http\Internal\Process\Slot;

final class ProcessReplacementTest extends TestCase
{
    private Slot $one;
    private Slot $two;
    private ProcessReplacement $succession;

    protected function setUp(): void
    {
        $slot = static fn(string $name): Slot
            => new Slot(new ProcessRole(
                $name,
                [],
                static fn() => throw new \LogicException('It is not to be started'),
            ));
        [$this->one, $this->two] = [$slot('one'), $slot('two')];
        $this->succession = new ProcessReplacement([$this->one, $this->two]);
    }

    public function testAReloadReplacesOneAfterTheOther(): void
    {
        self::assertNull($this->succession->next());
        self::assertFalse($this->succession->isReloading());
        self::assertNull($this->succession->reload());
        self::assertTrue($this->succession->isReloading());
        self::assertSame($this->one, $this->succession->next());
        self::assertNull($this->succession->next(), 'not before the first one serves');
        self::assertFalse($this->succession->succeeded());
        self::assertSame($this->two, $this->succession->next());
        self::assertTrue($this->succession->succeeded());
        self::assertNull($this->succession->next());
    }

    public function testAReloadDuringAnotherTakesItsPlaceAndBeginsWithTheFirst(): void
    {
        $this->succession->reload();
        $this->succession->next();
        $this->succession->succeeded();
        self::assertSame($this->two, $this->succession->next());

        self::assertSame($this->two, $this->succession->reload(), 'its successor is not wanted any more');
        self::assertNull($this->succession->reload());
        self::assertEqualsCanonicalizing(['one', 'two', 'end of a reload'], $this->toTheEnd());
    }

    public function testAReloadDoesNotWaitForASuccessorThatStartsForAnotherReason(): void
    {
        $this->succession->replace($this->two);
        $this->succession->next();

        self::assertSame($this->two, $this->succession->reload());
        self::assertSame(['one', 'two', 'end of a reload'], $this->toTheEnd());
    }

    public function testAFailureLeavesTheOthersAsTheyAre(): void
    {
        $this->succession->reload();
        $this->succession->next();

        self::assertSame(0, $this->succession->failed());
        self::assertNull($this->succession->next());
        $this->succession->reload();
        self::assertSame($this->one, $this->succession->next(), 'a later one begins at once');
    }

    public function testOneThatHasDoneItsShareIsReplacedOnceHoweverOftenItAsks(): void
    {
        $this->succession->replace($this->two);
        $this->succession->replace($this->two);

        self::assertSame(['two'], $this->toTheEnd());
    }

    public function testOneThatIsReplacedAnywayIsNotReplacedTwice(): void
    {
        $this->succession->replace($this->two);
        $this->succession->reload();

        self::assertSame(['two', 'one', 'end of a reload'], $this->toTheEnd());
    }

    public function testAFailureOfOneIsNoFailureOfAReload(): void
    {
        $this->succession->replace($this->one);
        $this->succession->next();

        self::assertNull($this->succession->failed());
    }

    public function testAReloadThatFailsKnowsHowManyItHasReplaced(): void
    {
        foreach (range(1, 2) as $_) {
            $this->succession->reload();
            $this->succession->next();
            $this->succession->succeeded();
            $this->succession->next();
            self::assertSame(1, $this->succession->failed());
        }
    }

    public function testWhatAnEarlierReloadHasReplacedDoesNotCountForTheNewest(): void
    {
        $this->succession->reload();
        $this->succession->next();
        $this->succession->succeeded();
        $this->succession->reload();
        $this->succession->next();

        self::assertSame(0, $this->succession->failed());
    }

    /** @return list<string> slots whose successors start, and where a reload ends */
    private function toTheEnd(): array
    {
        $events = [];
        while (($slot = $this->succession->next()) !== null) {
            $events[] = $slot->role->name;
            if ($this->succession->succeeded()) {
                $events[] = 'end of a reload';
            }
        }

        return $events;
    }
}
