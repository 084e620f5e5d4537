<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\TestCase;
use Spindle\Remote\Internal\OutcomeReceiver;
use Spindle\Remote\Internal\Waiters;
use Spindle\Remote\Job;
use Spindle\Tests\ProcessorTime;

final class WaitersTest extends TestCase
{
    public function testWaitersKeepTheirOrderWhenOthersAreRemovedOrReplaced(): void
    {
        $waiters = new Waiters();
        [$first, $second, $third, $other] = array_map(
            static fn(): OutcomeReceiver => self::createStub(OutcomeReceiver::class),
            range(1, 4),
        );
        $waiters->addForAll([new Job('a', ''), new Job('b', '')], $first);
        foreach ([$second, $third] as $waiter) {
            $waiters->add('a', $waiter);
        }
        $waiters->replace('a', $second, $other);
        self::assertSame([[$first, $other, $third], [$first]], [$waiters->of('a'), $waiters->of('b')]);
        $waiters->removeOne('a', $first);
        $waiters->removeOne('a', $second);
        $waiters->removeOne('b', $second);
        $waiters->removeOne('none', $first);
        self::assertSame([[$other, $third], [$first]], [$waiters->of('a'), $waiters->of('b')]);
        $waiters->removeOne('b', $first);

        self::assertSame([['a'], false], [$waiters->jobIds(), $waiters->has('b')]);
        self::assertSame([$other, $third], $waiters->remove('a'));
        self::assertTrue($waiters->isEmpty());
    }

    public function testManyWaitersOfOneJobAreRemovedQuickly(): void
    {
        $waiters = new Waiters();
        $receivers = array_map(
            static fn(): OutcomeReceiver => self::createStub(OutcomeReceiver::class),
            range(1, 10_000),
        );
        foreach ($receivers as $receiver) {
            $waiters->add('job', $receiver);
        }

        self::assertLessThan(0.5, ProcessorTime::of(static function () use ($waiters, $receivers): void {
            foreach ($receivers as $receiver) {
                $waiters->removeOne('job', $receiver);
            }
        }));
        self::assertTrue($waiters->isEmpty());
    }
}
