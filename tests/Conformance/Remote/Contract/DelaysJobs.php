<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Internal\Clock;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * Jobs that may not be claimed yet.
 *
 * @phpstan-require-extends BrokerContract
 */
trait DelaysJobs
{
    public function testAJobMayBeClaimedWhenItsDelayIsOverAndNotBefore(): void
    {
        $this->submit(new Job('job', 'frame', delay: self::SHORT));
        $start = Clock::now();
        self::assertSame('job', $this->claimSoon($this->join('a'))->id);

        self::assertGreaterThan(self::SHORT - 0.05, Clock::now() - $start);
    }

    public function testAJobThatIsTriedAgainWaitsForItsDelay(): void
    {
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry, 0, 1, self::SHORT);
        self::assertSame(['job'], $this->listed(JobStatus::Delayed));
        $delivery = $this->claimSoon('a');

        self::assertSame([2, 1], [$delivery->claimNumber, $delivery->failures]);
    }

    public function testALongDelayIsNotOver(): void
    {
        $this->submit(new Job('job', 'frame', delay: 3e7));

        self::assertSame([], $this->claim($this->join('a')));
        self::assertSame([1, 0], $this->statistics('delayed', 'waiting'));
        $dueIn = $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}');
        self::assertEqualsWithDelta(3e7, $dueIn, 60.0);
    }

    public function testARenewalReturnsWhenTheNextDelayIsOver(): void
    {
        self::assertNull($this->broker()->renewLease($this->queue(), 'a', self::LONG, true, '{}'));
        $this->submit(new Job('late', 'frame', delay: 500.0), new Job('soon', 'frame', delay: 100.0));

        $dueIn = $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}');
        self::assertEqualsWithDelta(100.0, $dueIn, 30.0);
    }

    public function testADueJobIsQueuedBehindWaitingJobsAndBeforeLaterOnes(): void
    {
        $this->submit('new', new Job('due', 'frame', delay: 0.001));
        $this->join('a');
        Eventually::holds(function (): bool {
            $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}');

            return $this->statistic('delayed') === 0;
        }, 'its delay is over');

        $this->submit('later');
        self::assertSame(['new', 'due', 'later'], self::ids($this->claim('a')));
    }

    public function testThoseThatAreDelayedAreListedInTheOrderInWhichTheyAreDue(): void
    {
        $this->submit(new Job('late', 'frame', delay: 500.0), new Job('soon', 'frame', delay: 100.0));
        $delayed = $this->broker()->listJobs($this->queue(), JobStatus::Delayed, 10);

        self::assertSame(['soon', 'late'], array_keys($delayed));
        self::assertEqualsWithDelta(400_000, (int) $delayed['late']['due'] - (int) $delayed['soon']['due'], 5);
    }
}
