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

    public function testAPostponedJobKeepsItsNumbersAndTheTimeOfItsFirstPostponement(): void
    {
        $this->submit(new Job('job', 'frame', 'key'), new Job('same-key', 'frame', 'key'));
        $owner = $this->join('a');
        $this->giveBack($owner, $this->claimOne('a'), SettlementKind::Retry, 1, 2, 0.001);
        $this->end('a', $this->claimSoon('a'));
        $first = $this->claimSoon('a');
        self::assertSame([1, 2, 0], [$first->crashes, $first->failures, $first->postponedSeconds]);

        $this->giveBack('a', $first, SettlementKind::Postpone, 1, 2, self::SHORT);
        self::assertSame(['job'], $this->listed(JobStatus::Delayed));
        $since = $this->broker()->listJobs($this->queue(), JobStatus::Delayed, 1)['job']['postponed_since'] ?? null;
        self::assertGreaterThan(0, $since);
        $second = $this->claimSoon('a');
        self::assertSame([1, 2], [$second->crashes, $second->failures]);
        self::assertGreaterThan($first->claimNumber, $second->claimNumber);

        $this->giveBack('a', $second, SettlementKind::Postpone, 1, 2, 60.0);
        $details = $this->broker()->listJobs($this->queue(), JobStatus::Delayed, 1, 'job')['job'] ?? [];
        self::assertSame([1, 2, $since], [$details['crashes'], $details['failures'], $details['postponed_since']]);
        self::assertSame([2, 1], $this->statistics('postponed_total', 'retried_total'));
    }

    public function testTheTimeSinceTheFirstPostponementIsCountedAlsoAfterALostLease(): void
    {
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Postpone);
        $this->claimSoon($this->join('b'));
        $this->broker()->releaseLease($this->queue(), 'b');
        $this->join('c');

        Eventually::holds(function (): bool {
            $delivery = $this->claimSoon('c');
            $this->giveBack('c', $delivery);

            return $delivery->postponedSeconds > 0;
        }, 'a second has passed', 20.0);
    }

    public function testAPostponedJobThatWasCancelledIsClaimedAtOnce(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->broker()->cancel($this->queue(), ['job']);
        $this->giveBack('a', $delivery, SettlementKind::Postpone, 0, 0, 3600.0);

        self::assertTrue($this->claimSoon('a')->cancelled);
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
