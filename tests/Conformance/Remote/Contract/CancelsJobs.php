<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\AttachResult;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
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

    public function testACancellationOfAnUnclaimedJobIsRecorded(): void
    {
        $this->submit('holds', new Job('delayed', 'frame', delay: 60.0), 'tried', new Job('first', 'frame', 'key'));
        $this->submit(new Job('blocked', 'frame', 'key'));
        $byId = array_column($this->claim($this->join('a')), null, 'id');
        $this->submit('waits');
        $this->giveBack('a', $byId['tried'], SettlementKind::Retry, 0, 1, 60.0);
        $ids = ['waits', 'delayed', 'blocked', 'tried'];

        self::assertSame(
            array_combine($ids, [JobStatus::Waiting, JobStatus::Delayed, JobStatus::Waiting, JobStatus::Delayed]),
            $this->broker()->cancelAndRecord($this->queue(), $ids),
        );
        $results = $this->broker()->attach($this->queue(), $ids, 'client');
        foreach ($ids as $id) {
            self::assertSame(JobStatus::Cancelled, $this->broker()->status($this->queue(), $id));
            self::assertEquals(new AttachResult(true, null, false, true), $results[$id]);
        }
        self::assertSame([4, 0, 0, 0], $this->statistics('cancelled_total', 'waiting', 'delayed', 'blocked'));
        $this->end('a', $byId['first']);
        self::assertSame([], $this->claim('a'));
        self::assertSame(
            array_fill_keys($ids, JobStatus::Cancelled),
            $this->broker()->cancelAndRecord($this->queue(), $ids),
        );
        self::assertSame(4, $this->statistic('cancelled_total'));
        foreach (JobStatus::cases() as $status) {
            self::assertSame($status === JobStatus::Running ? ['holds'] : [], $this->listed($status));
        }
    }

    public function testTheIdOfACancelledJobStaysInUse(): void
    {
        $frame = str_repeat('s', 42) . 'body';
        $this->submit(new Job('job', $frame));
        $this->broker()->cancelAndRecord($this->queue(), ['job']);
        $same = $this->broker()->submit($this->queue(), [new Job('job', $frame)], 10, 'client', true);
        $other = $this->broker()->submit($this->queue(), [new Job('job', "{$frame} 2")], 10, 'client', true);

        self::assertSame([1, []], [$same->accepted, $same->conflicts]);
        self::assertSame([1, [0]], [$other->accepted, $other->conflicts]);
        self::assertSame([], $this->claim($this->join('a')));
        self::assertSame(JobStatus::Cancelled, $this->broker()->status($this->queue(), 'job'));
    }

    public function testARunningJobIsCancelledWhenItsOwnerReportsThis(): void
    {
        $received = $this->post('a');
        $this->submit('job', 'faster');
        [$delivery, $faster] = $this->claim($this->join('a'));
        $ids = ['job', 'faster'];
        $running = array_fill_keys($ids, JobStatus::Running);

        self::assertSame($running, $this->broker()->cancelAndRecord($this->queue(), $ids));
        self::assertSame($running, $this->broker()->cancelAndRecord($this->queue(), $ids));
        Eventually::holds(static fn(): bool => \count($received->cancelled) === 2, 'the owner gets messages');
        self::assertSame([null, JobStatus::Running], [
            $this->outcome('job'),
            $this->broker()->status($this->queue(), 'job'),
        ]);
        $this->end('a', $delivery, SettlementKind::Cancelled, 'cancelled');
        $this->end('a', $faster);

        self::assertSame(['cancelled', 'outcome'], [$this->outcome('job'), $this->outcome('faster')]);
        self::assertSame(
            ['job' => JobStatus::Cancelled, 'faster' => JobStatus::Done],
            $this->broker()->cancelAndRecord($this->queue(), $ids),
        );
        self::assertSame(JobStatus::Done, $this->broker()->status($this->queue(), 'faster'));
        self::assertSame([1, 1], $this->statistics('cancelled_total', 'done_total'));
    }

    public function testACancellationOfOtherJobsIsNotRecorded(): void
    {
        $this->submit('dead', 'done');
        [$dead, $done] = $this->claim($this->join('a'));
        $this->end('a', $dead, SettlementKind::Dead);
        $this->end('a', $done);
        $statuses = ['dead' => JobStatus::Dead, 'done' => JobStatus::Done, 'unheard-of' => null];

        self::assertSame($statuses, $this->broker()->cancelAndRecord($this->queue(), array_keys($statuses)));
        self::assertSame($statuses, $this->broker()->cancelAndRecord($this->queue(), array_keys($statuses)));
        self::assertSame(['outcome', 'outcome', false], array_map($this->outcome(...), array_keys($statuses)));
        self::assertSame([1, 0], $this->statistics('dead', 'cancelled_total'));
        self::assertSame([], $this->broker()->cancelAndRecord($this->queue(), []));
    }

    public function testAJobWhoseOwnersLeaseHasEndedIsCancelledAtOnceAndItsKeyIsFree(): void
    {
        $this->submit(new Job('job', 'frame', 'key'));
        $this->claimOne($this->join('a', self::SHORT));
        $this->submit(new Job('next', 'frame', 'key'));
        self::assertSame([], $this->claim($this->join('b')));
        Eventually::holds(fn(): bool => $this->statistic('agents') === 1, 'the lease has ended');

        self::assertSame(
            ['job' => JobStatus::Running],
            $this->broker()->cancelAndRecord($this->queue(), ['job']),
        );
        self::assertSame(JobStatus::Cancelled, $this->broker()->status($this->queue(), 'job'));
        self::assertSame(['next'], self::ids($this->claim('b')));
        $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}'); // ends the lease of a
        self::assertSame([], $this->claim('b'));
        self::assertSame([1, 1, 0, 0], $this->statistics('cancelled_total', 'running', 'blocked', 'lost_total'));
    }

    public function testAfterTheCancellationOfTheNextJobOfAKeyTheOthersKeepTheirOrder(): void
    {
        $this->submit(...array_map(self::keyed(...), ['one', 'two', 'three', 'four', 'five']));
        [$one] = $this->claim($this->join('a'));
        $this->end('a', $one);
        $this->broker()->cancelAndRecord($this->queue(), ['two']);
        self::assertSame([1, 2], $this->statistics('waiting', 'blocked'));
        $ids = [];
        for ($i = 0; $i < 3; ++$i) {
            [$delivery] = $this->claim('a');
            $ids[] = $delivery->id;
            $this->end('a', $delivery);
        }

        self::assertSame(['three', 'four', 'five'], $ids);
    }

    public function testACancelledJobIsNotDelayedAnyMore(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->broker()->cancelAndRecord($this->queue(), ['job']);
        $this->giveBack('a', $delivery, SettlementKind::Retry, 0, 1, 60.0);

        self::assertTrue($this->claimOne('a')->cancelled);
    }

    public function testMailboxesAreToldToLookUpACancelledJob(): void
    {
        $received = [$this->post('first'), $this->post('second')];
        $this->submit('job', 'other');
        foreach (['first', 'second'] as $mailbox) {
            $this->broker()->attach($this->queue(), ['job', 'other'], $mailbox);
        }
        $this->broker()->cancelAndRecord($this->queue(), ['job']);
        foreach ($received as $messages) {
            Eventually::holds(static fn(): bool => $messages->outcomes !== [], 'there is a message');
            self::assertSame([['job' => '']], $messages->outcomes);
        }
    }
}
