<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Job;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * Cancelled jobs.
 *
 * @phpstan-require-extends BrokerContract
 */
trait CancelsJobs
{
    public function testAnUnclaimedJobIsRemoved(): void
    {
        $this->submit('job', 'other');

        self::assertSame(['job'], $this->broker()->cancel($this->queue(), ['job']));
        self::assertFalse($this->outcome('job'));
        self::assertSame(['other'], self::ids($this->claim($this->join('a'))));
        self::assertSame(1, $this->statistic('cancelled_total'));
    }

    public function testAJobThatIsDelayedIsGone(): void
    {
        $this->submit(new Job('job', 'frame', delay: 60.0));

        self::assertSame(['job'], $this->broker()->cancel($this->queue(), ['job']));
        self::assertFalse($this->outcome('job'));
        self::assertSame(0, $this->statistic('delayed'));
        self::assertNull($this->broker()->renewLease($this->queue(), 'a', self::LONG, true, '{}'));
    }

    public function testACancelledJobThatIsSubmittedAgainHasItsNewDelayAndKey(): void
    {
        $this->submit('late', new Job('first', 'frame', 'key'));
        $this->broker()->cancel($this->queue(), ['late']);
        $this->submit(new Job('late', 'frame', delay: 60.0));
        $first = $this->claimOne($this->join('a'));
        self::assertSame('first', $first->id);

        $this->submit(new Job('next', 'frame', 'key'));
        $this->broker()->cancel($this->queue(), ['next']);
        $this->submit(new Job('next', 'frame', 'key'));
        self::assertSame([], $this->claim('a'));
        self::assertSame([], $this->claim('a'));
        $this->end('a', $first);

        self::assertSame(['next'], self::ids($this->claim('a')));
        self::assertSame([1, 0], $this->statistics('delayed', 'blocked'));
    }

    public function testAJobThatIsToBeTriedAgainIsGone(): void
    {
        $this->submit('one', 'two');
        [$one, $two] = $this->claim($this->join('a'));
        $this->giveBack('a', $one, SettlementKind::Retry);
        $this->giveBack('a', $two, SettlementKind::Retry, 0, 1, 60.0);

        self::assertSame(['one', 'two'], $this->broker()->cancel($this->queue(), ['one', 'two']));
        self::assertSame([], $this->claim('a'));
        self::assertSame([0, 0], $this->statistics('delayed', 'waiting'));
    }

    public function testUnknownJobsCountAsRemovedUnlessTheyHaveAnOutcome(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'));

        self::assertSame(['unheard-of'], $this->broker()->cancel($this->queue(), ['unheard-of', 'job']));
        self::assertSame(['unheard-of'], $this->broker()->cancelUnclaimed($this->queue(), ['unheard-of', 'job']));
        self::assertSame('outcome', $this->outcome('job'));
        self::assertSame(0, $this->statistic('cancelled_total'));
    }

    public function testTheOwnerOfARunningJobGetsAMessage(): void
    {
        $received = $this->post('a');
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'));
        $delivery = $this->claimOne('a');

        self::assertSame([], $this->broker()->cancel($this->queue(), ['job']));
        Eventually::holds(static fn(): bool => $received->cancelled !== [], 'there is a message');
        self::assertSame(['job' => 2], $received->cancelled);
        self::assertNull($this->outcome('job'));
        $this->end('a', $delivery, SettlementKind::Cancelled, 'cancelled');
        self::assertSame('cancelled', $this->outcome('job'));
    }

    public function testAnUnclaimedJobIsCancelledAndAClaimedOneGoesOn(): void
    {
        $received = $this->post('a');
        $this->submit('claimed');
        $delivery = $this->claimOne($this->join('a'));
        $this->submit('waiting', new Job('delayed', 'frame', delay: 60.0));

        self::assertSame(
            ['waiting', 'delayed', 'unheard-of'],
            $this->broker()->cancelUnclaimed($this->queue(), ['claimed', 'waiting', 'delayed', 'unheard-of']),
        );
        self::assertSame([false, null], [$this->outcome('waiting'), $this->outcome('claimed')]);
        $this->end('a', $delivery);
        self::assertSame('outcome', $this->outcome('claimed'));
        self::assertSame([], $received->cancelled);
        self::assertSame(2, $this->statistic('cancelled_total'));
    }

    public function testAJobThatIsDoneAllTheSameHasItsOutcome(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->broker()->cancel($this->queue(), ['job']);
        $this->end('a', $delivery);

        self::assertSame('outcome', $this->outcome('job'));
    }

    public function testTheNextClaimOfACancelledJobIsCancelled(): void
    {
        $this->submit('one', 'two');
        [$one, $two] = $this->claim($this->join('a'));
        self::assertFalse($one->cancelled);
        $this->broker()->cancel($this->queue(), ['one']);
        $this->giveBack('a', $one);
        $this->giveBack('a', $two);
        $again = $this->claim('a');

        self::assertSame(['one', 'two'], self::ids($again));
        self::assertSame([true, false], [$again[0]->cancelled, $again[1]->cancelled]);
    }

    public function testACancelledJobOfALostOwnerIsClaimedAsCancelled(): void
    {
        $this->submit('job');
        $this->claimOne($this->join('a', self::SHORT));
        $this->broker()->cancel($this->queue(), ['job']);
        $delivery = $this->claimSoon($this->join('b'));

        self::assertSame([true, true], [$delivery->cancelled, $delivery->lost]);
    }

    public function testAJobThatIsGoneCanBeSubmittedAgain(): void
    {
        $this->submit('job');
        $this->broker()->cancel($this->queue(), ['job']);
        $this->submit('job');

        self::assertSame(['job'], self::ids($this->claim($this->join('a'))));
        self::assertSame([], $this->claim('a'));
    }

    public function testADeadLetterStays(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead);
        $this->broker()->cancel($this->queue(), ['job']);

        self::assertSame(1, $this->statistic('dead'));
    }
}
