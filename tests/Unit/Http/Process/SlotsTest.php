<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\TestCase;
use Psr\Log\NullLogger;
use Spindle\Http\Internal\Process\Channel;
use Spindle\Http\Internal\Process\Child;
use Spindle\Http\Internal\Process\ChildMessages;
use Spindle\Http\Internal\Process\Children;
use Spindle\Http\Internal\Process\ProcessRole;
use Spindle\Http\Internal\Process\ServerFactory;
use Spindle\Http\Internal\Process\SignalInbox;
use Spindle\Http\Internal\Process\Slot;
use Spindle\Http\Internal\Process\Slots;
use Spindle\Http\SupervisorOptions;

final class SlotsTest extends TestCase
{
    public function testNoFurtherProcessStartsAfterASignal(): void
    {
        [$slots, $children, $slot] = $this->slots();
        $signals = new SignalInbox();
        try {
            posix_kill((int) getmypid(), \SIGTERM);
            $slots->startDueProcesses((int) hrtime(true), $signals);
            $started = $slot->current;
        } finally {
            $children->killAll();
            $signals->close();
        }

        self::assertNull($started);
    }

    public function testTheOtherProcessesAreDueOnlyWhenTheFirstOneServes(): void
    {
        [$slots, , $slot] = $this->slots();
        self::assertSame(0, $slots->nextStart());

        $slot->current = $child = new Child($slot, 1, Channel::pair()[0]);
        self::assertSame(\PHP_INT_MAX, $slots->nextStart());

        $child->readyAt = 1;
        self::assertSame(0, $slots->nextStart());
    }

    /** @return array{Slots, Children, Slot} with the first of two slots */
    private function slots(): array
    {
        $options = new SupervisorOptions();
        $servers = new ServerFactory('', $options, new NullLogger());
        $one = new Slot(new ProcessRole('one', [], $servers));
        $two = new Slot(new ProcessRole('two', [], $servers));
        $children = new Children(new NullLogger(), self::createStub(ChildMessages::class), []);

        return [new Slots('', [$one, $two], $children, '', $options, new NullLogger()), $children, $one];
    }
}
