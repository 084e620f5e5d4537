<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Job;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * Keys: jobs of one key never run at the same time.
 *
 * @phpstan-require-extends BrokerContract
 */
trait SeparatesKeys
{
    public function testJobsOfOneKeyNeverRunAtTheSameTime(): void
    {
        $this->submit(
            self::keyed('one'),
            self::keyed('two'),
            self::keyed('three'),
            new Job('other', 'frame', 'other key'),
            'none',
        );
        $this->join('a');
        $this->join('b');

        self::assertSame(['one', 'other', 'none'], self::ids($this->claim('a')));
        self::assertSame([], $this->claim('b'));
        self::assertSame([2, 0], $this->statistics('blocked', 'waiting'));
    }

    public function testEachJobOfAKeyRunsInTheEnd(): void
    {
        $ids = array_map(static fn(int $i): string => "job-{$i}", range(1, 20));
        $this->submit(...array_map(self::keyed(...), $ids));
        $this->join('a');
        $seen = [];
        while (\count($seen) < 20) {
            $delivery = $this->claimOne('a');
            $seen[] = $delivery->id;
            $this->end('a', $delivery);
        }
        sort($seen);
        sort($ids);

        self::assertSame($ids, $seen);
        self::assertSame([0, 0], $this->statistics('blocked', 'waiting'));
    }

    public function testTheNextOfAKeyMayBeClaimedWhenTheOneBeforeHasItsOutcome(): void
    {
        $this->submit(self::keyed('one'), self::keyed('two'), self::keyed('three'), self::keyed('four'));
        $this->join('a');
        $ids = [];
        foreach ([SettlementKind::Done, SettlementKind::Dead, SettlementKind::Cancelled] as $kind) {
            $delivery = $this->claimOne('a');
            $ids[] = $delivery->id;
            $this->end('a', $delivery, $kind);
        }
        $ids[] = $this->claimOne('a')->id;

        self::assertSame(['one', 'two', 'three', 'four'], $ids);
    }

    public function testTheNextOfAKeyMayBeClaimedWhileTheOneBeforeWaitsToBeTriedAgain(): void
    {
        $this->submit(self::keyed('one'), self::keyed('two'));
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry, 0, 1, 60.0);

        self::assertSame('two', $this->claimOne('a')->id);
    }

    public function testOneOfAKeyRunsAfterOneWasGivenBack(): void
    {
        $this->submit(self::keyed('one'), self::keyed('two'));
        $this->giveBack($this->join('a'), $this->claimOne('a'));
        $first = $this->claimOne('a');
        $this->end('a', $first);
        $second = $this->claimOne('a');
        $this->end('a', $second);
        $ids = [$first->id, $second->id];
        sort($ids);

        self::assertSame(['one', 'two'], $ids);
    }

    public function testOneOfAKeyRunsAfterTheOwnerOfAnotherWasLost(): void
    {
        $this->submit(self::keyed('one'), self::keyed('two'));
        $this->claimOne($this->join('a', self::SHORT));
        $this->join('b');
        $first = $this->claimSoon('b');
        self::assertSame([], $this->claim('b'));
        $this->end('b', $first);
        $second = $this->claimSoon('b');
        $ids = [$first->id, $second->id];
        sort($ids);

        self::assertSame(['one', 'two'], $ids);
    }

    public function testOneWithADelayDoesNotRunBesideAnotherOfItsKey(): void
    {
        $this->submit(self::keyed('one'), new Job('two', 'frame', 'key', self::SHORT));
        $delivery = $this->claimOne($this->join('a'));
        Eventually::holds(function (): bool {
            self::assertSame([], $this->claim('a'));

            return $this->statistic('delayed') === 0;
        }, 'its delay is over');
        self::assertSame([], $this->claim('a'));
        $this->end('a', $delivery);

        self::assertSame('two', $this->claimOne('a')->id);
    }

    public function testAnIdleOwnerGetsAMessageAboutTheNextJobOfAKey(): void
    {
        $received = $this->post('b');
        $this->submit(self::keyed('one'), self::keyed('two'));
        $delivery = $this->claimOne($this->join('a'));
        self::assertSame([], $this->claim($this->join('b')));
        $this->end('a', $delivery);

        Eventually::holds(static fn(): bool => $received->jobsAvailable > 0, 'there is a message');
        self::assertSame('two', $this->claimOne('b')->id);
    }

    public function testAKeyIsFreeAgainWhenItsOnlyJobHasEnded(): void
    {
        $this->submit(self::keyed('one'));
        $this->end($this->join('a'), $this->claimOne('a'));
        $this->submit(self::keyed('two'));

        self::assertSame('two', $this->claimOne('a')->id);
    }

    public function testOneOfAKeyThatWaitsForAnotherCanBeCancelled(): void
    {
        $this->submit(self::keyed('one'), self::keyed('two'), self::keyed('three'));
        $delivery = $this->claimOne($this->join('a'));

        self::assertSame(['two'], $this->broker()->cancel($this->queue(), ['two']));
        self::assertSame([1, 0, 1], $this->statistics('blocked', 'waiting', 'running'));
        $this->end('a', $delivery);
        self::assertSame('three', $this->claimOne('a')->id);
        self::assertSame(0, $this->statistic('blocked'));
    }

    public function testThoseOfAKeyGoOnWhenTheNextOneIsCancelled(): void
    {
        $this->submit(self::keyed('one'), self::keyed('two'), self::keyed('three'));
        $this->end($this->join('a'), $this->claimOne('a')); // the next job becomes claimable
        $this->broker()->cancel($this->queue(), ['two']);

        self::assertSame('three', $this->claimOne('a')->id);
    }

    public function testARetriedDeadLetterStillHasItsKey(): void
    {
        $this->submit(self::keyed('one'));
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead);
        $this->submit(self::keyed('two'));
        $delivery = $this->claimOne('a');
        $this->broker()->retryDeadLetters($this->queue(), ['one']);

        self::assertSame([], $this->claim('a'));
        $this->end('a', $delivery);
        self::assertSame('one', $this->claimOne('a')->id);
    }

    public function testAKeyMayBeAnyBytes(): void
    {
        $keys = ['0', '1', "\0", ' ', "\xff,", str_repeat('k', 128)];
        foreach ($keys as $i => $key) {
            $this->submit(new Job("first-{$i}", 'frame', $key), new Job("second-{$i}", 'frame', $key));
        }
        $first = $this->claim($this->join('a'), 100);
        foreach ($first as $delivery) {
            $this->end('a', $delivery);
        }

        self::assertSame(array_map(static fn(int $i): string => "first-{$i}", array_keys($keys)), self::ids($first));
        self::assertSame(
            array_map(static fn(int $i): string => "second-{$i}", array_keys($keys)),
            self::ids($this->claim('a', 100)),
        );
    }

    private static function keyed(string $id): Job
    {
        return new Job($id, 'frame', 'key');
    }
}
