<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\TestCase;
use Psr\Log\NullLogger;
use Spindle\Http\Internal\Process\ProcessRole;
use Spindle\Http\Internal\Process\ReplacementQueue;
use Spindle\Http\Internal\Process\ServerFactory;
use Spindle\Http\Internal\Process\Slot;
use Spindle\Http\SupervisorOptions;

final class ReplacementQueueTest extends TestCase
{
    private Slot $one;
    private Slot $two;
    private ReplacementQueue $queue;

    protected function setUp(): void
    {
        $servers = new ServerFactory('', new SupervisorOptions(), new NullLogger());
        $slot = static fn(string $name): Slot => new Slot(new ProcessRole($name, [], $servers));
        [$this->one, $this->two] = [$slot('one'), $slot('two')];
        $this->queue = new ReplacementQueue([$this->one, $this->two]);
    }

    public function testAReloadReplacesOneProcessAtATime(): void
    {
        self::assertNull($this->queue->next());
        self::assertFalse($this->queue->isReloading);
        self::assertNull($this->queue->reload());
        self::assertTrue($this->queue->isReloading);
        self::assertSame($this->one, $this->queue->next());
        self::assertNull($this->queue->next(), 'not before the first one serves');
        self::assertFalse($this->queue->succeeded());
        self::assertSame($this->two, $this->queue->next());
        self::assertTrue($this->queue->succeeded());
        self::assertNull($this->queue->next());
    }

    public function testAReloadCancelsAnEarlierOneAndReplacesAllProcesses(): void
    {
        $this->queue->reload();
        $this->queue->next();
        $this->queue->succeeded();
        self::assertSame($this->two, $this->queue->next());

        self::assertSame($this->two, $this->queue->reload(), 'its successor is not wanted any more');
        self::assertNull($this->queue->reload());
        self::assertEqualsCanonicalizing(['one', 'two', 'end of a reload'], $this->toTheEnd());
    }

    public function testAReloadCancelsAReplacementForAnotherReason(): void
    {
        $this->queue->add($this->two);
        $this->queue->next();

        self::assertSame($this->two, $this->queue->reload());
        self::assertSame(['one', 'two', 'end of a reload'], $this->toTheEnd());
    }

    public function testAFailureEmptiesTheQueue(): void
    {
        $this->queue->reload();
        $this->queue->next();

        self::assertSame(0, $this->queue->failed());
        self::assertNull($this->queue->next());
        $this->queue->reload();
        self::assertSame($this->one, $this->queue->next(), 'a later one begins at once');
    }

    public function testASlotIsQueuedOnlyOnce(): void
    {
        $this->queue->add($this->two);
        $this->queue->add($this->two);

        self::assertSame(['two'], $this->toTheEnd());
    }

    public function testAReloadDoesNotReplaceAQueuedSlotTwice(): void
    {
        $this->queue->add($this->two);
        $this->queue->reload();

        self::assertSame(['two', 'one', 'end of a reload'], $this->toTheEnd());
    }

    public function testAFailureWithoutAReloadHasNoCount(): void
    {
        $this->queue->add($this->one);
        $this->queue->next();

        self::assertNull($this->queue->failed());
    }

    public function testAFailedReloadReturnsHowManyProcessesItHasReplaced(): void
    {
        foreach (range(1, 2) as $_) {
            $this->queue->reload();
            $this->queue->next();
            $this->queue->succeeded();
            $this->queue->next();
            self::assertSame(1, $this->queue->failed());
        }
    }

    public function testReplacementsOfAnEarlierReloadDoNotCount(): void
    {
        $this->queue->reload();
        $this->queue->next();
        $this->queue->succeeded();
        $this->queue->reload();
        $this->queue->next();

        self::assertSame(0, $this->queue->failed());
    }

    /** @return list<string> slots whose successors start, and where a reload ends */
    private function toTheEnd(): array
    {
        $events = [];
        while (($slot = $this->queue->next()) !== null) {
            $events[] = $slot->role->name;
            if ($this->queue->succeeded()) {
                $events[] = 'end of a reload';
            }
        }

        return $events;
    }
}
