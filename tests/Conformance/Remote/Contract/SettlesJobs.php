<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Delivery;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * The outcomes of claimed jobs, and the owners that may settle them.
 *
 * @phpstan-require-extends BrokerContract
 */
trait SettlesJobs
{
    public function testAJobThatIsDoneHasItsOutcomeAndIsNotGivenAgain(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Done, "\0outcome\xff");

        self::assertSame("\0outcome\xff", $this->outcome('job'));
        self::assertSame([], $this->claim('a'));
        self::assertSame([1, 0, 0], $this->statistics('done_total', 'running', 'waiting'));
    }

    public function testAnOutcomeMayBeEmpty(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Done, '');

        self::assertSame('', $this->outcome('job'));
    }

    public function testAnOutcomeIsKeptAsLongAsWasAskedAndNoLonger(): void
    {
        $this->submit('short', 'long');
        [$short, $long] = $this->claim($this->join('a'));
        $this->broker()->settleAndClaim(
            $this->queue(),
            'a',
            [new Settlement('short', $short->claimNumber, SettlementKind::Done, frame: 'outcome')],
            0,
            1.0,
        );
        self::assertSame('outcome', $this->outcome('short'));
        $this->end('a', $long);

        Eventually::holds(fn(): bool => $this->outcome('short') === false, 'nothing is known of it');
        self::assertSame('outcome', $this->outcome('long'));
    }

    public function testAnOutcomeThatIsForgottenIsGone(): void
    {
        $this->submit('done', 'dead', 'runs', 'waits');
        [$done, $dead] = $this->claim($this->join('a'), 3);
        $this->end('a', $done);
        $this->end('a', $dead, SettlementKind::Dead);
        $this->broker()->dropOutcomes($this->queue(), ['done', 'dead', 'runs', 'waits', 'unheard-of']);

        self::assertSame(
            [false, null, null],
            [$this->outcome('done'), $this->outcome('runs'), $this->outcome('waits')],
        );
        self::assertSame([1, 1, 1], $this->statistics('dead', 'running', 'waiting'));
    }

    public function testAJobThatIsDeadHasItsOutcomeAndIsKeptWithItsReason(): void
    {
        $this->submit('job');
        $this->end(
            $this->join('a'),
            $this->claimOne('a'),
            SettlementKind::Dead,
            'outcome',
            '{"reason":"caf\u00e9 \"1\"\n2","attempts":3,"owner":"a"}',
        );
        $dead = $this->broker()->listJobs($this->queue(), JobStatus::Dead, 1, 'job')['job'];

        self::assertSame('outcome', $this->outcome('job'));
        self::assertSame(["caf\u{e9} \"1\"\n2", 3, 'a'], [$dead['reason'], $dead['attempts'], $dead['owner']]);
        self::assertSame([1, 1, 0], $this->statistics('dead', 'died_total', 'running'));
        self::assertSame([], $this->claim('a'));
    }

    public function testADeadLetterMayHaveNoReason(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead, 'outcome', '');

        self::assertSame(['died'], array_keys($this->broker()->listJobs($this->queue(), JobStatus::Dead, 10)['job']));
    }

    public function testAJobThatIsCancelledHasItsOutcomeAndIsNoDeadLetter(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Cancelled, 'cancelled');

        self::assertSame('cancelled', $this->outcome('job'));
        self::assertSame([0, 1], $this->statistics('dead', 'cancelled_total'));
        self::assertSame([], $this->claim('a'));
    }

    public function testARetriedJobHasItsNumberOfFailuresInTheNextClaim(): void
    {
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry, 1, 2);
        self::assertNull($this->outcome('job'));
        $delivery = $this->claimOne($this->join('b'));

        self::assertSame([2, 1, 2, false], [
            $delivery->claimNumber,
            $delivery->crashes,
            $delivery->failures,
            $delivery->lost,
        ]);
        self::assertSame(1, $this->statistic('retried_total'));
    }

    public function testAJobThatIsGivenBackHasNotFailed(): void
    {
        $this->submit('job');
        $this->join('a');
        $this->giveBack('a', $this->claimOne('a'), SettlementKind::Retry, 1, 2);
        $delivery = $this->claimOne('a');
        $this->giveBack('a', $delivery, SettlementKind::Release, $delivery->crashes, $delivery->failures);
        $delivery = $this->claimOne($this->join('b'));

        self::assertSame([3, 1, 2, false], [
            $delivery->claimNumber,
            $delivery->crashes,
            $delivery->failures,
            $delivery->lost,
        ]);
        self::assertSame(1, $this->statistic('released_total'));
    }

    public function testASecondSettlementOfAClaimDoesNotCount(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->end('a', $delivery);

        self::assertSame(
            ['job'],
            $this->settle('a', new Settlement('job', $delivery->claimNumber, SettlementKind::Done, frame: 'another')),
        );
        self::assertSame(
            ['job'],
            $this->settle('a', new Settlement('job', $delivery->claimNumber, SettlementKind::Retry)),
        );
        self::assertSame('outcome', $this->outcome('job'));
        self::assertSame([], $this->claim('a'));
        self::assertSame([1, 2], $this->statistics('done_total', 'stale_total'));
    }

    public function testOfTwoSettlementsAtOnceTheFirstCounts(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));

        self::assertSame(['job'], $this->settle(
            'a',
            new Settlement('job', $delivery->claimNumber, SettlementKind::Done, frame: 'outcome'),
            new Settlement('job', $delivery->claimNumber, SettlementKind::Dead, frame: 'another'),
        ));
        self::assertSame('outcome', $this->outcome('job'));
        self::assertSame([1, 0], $this->statistics('done_total', 'dead'));
    }

    public function testAnotherOwnersJobCannotBeSettled(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->join('b');

        self::assertSame(
            ['job'],
            $this->settle('b', new Settlement('job', $delivery->claimNumber, SettlementKind::Done, frame: 'another')),
        );
        self::assertNull($this->outcome('job'));
        $this->end('a', $delivery);
        self::assertSame('outcome', $this->outcome('job'));
    }

    public function testAnOwnerSettlesNothingWithTheNumberOfAnEarlierClaim(): void
    {
        $this->submit('job');
        $first = $this->claimOne($this->join('a'));
        $this->giveBack('a', $first);
        $second = $this->claimOne('a');

        self::assertSame(
            ['job'],
            $this->settle('a', new Settlement('job', $first->claimNumber, SettlementKind::Done, frame: 'another')),
        );
        self::assertNull($this->outcome('job'));
        $this->end('a', $second);
    }

    public function testAnUnknownJobIsNotSettled(): void
    {
        $this->submit('job');
        $this->join('a');

        self::assertSame(
            ['unheard-of', 'job'],
            $this->settle(
                'a',
                new Settlement('unheard-of', 1, SettlementKind::Dead),
                new Settlement('job', 0, SettlementKind::Done),
            ),
        );
        self::assertFalse($this->outcome('unheard-of'));
        self::assertSame(['job'], self::ids($this->claim('a')));
    }

    public function testAStaleSettlementDoesNotAffectOthers(): void
    {
        $this->submit('one', 'two');
        [$one, $two] = $this->claim($this->join('a'));

        self::assertSame(['stale'], $this->settle(
            'a',
            new Settlement('one', $one->claimNumber, SettlementKind::Done, frame: '1'),
            new Settlement('stale', 1, SettlementKind::Done, frame: '2'),
            new Settlement('two', $two->claimNumber, SettlementKind::Done, frame: '3'),
        ));
        self::assertSame(['1', '3'], [$this->outcome('one'), $this->outcome('two')]);
    }

    public function testAnOwnerWhoseLeaseHasEndedSettlesNothing(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a', self::SHORT));
        Eventually::holds(fn(): bool => $this->statistic('agents') === 0, 'its lease has ended');

        self::thrown(LeaseLostException::class, fn() => $this->end('a', $delivery));
        self::assertNull($this->outcome('job'));
        self::assertSame('job', $this->claimSoon($this->join('b'))->id);
        self::thrown(LeaseLostException::class, fn() => $this->end('a', $delivery));
        self::assertNull($this->outcome('job'));
    }

    public function testTheRefusalsOfAJobAreCounted(): void
    {
        $this->submit('job');
        $refusals = [];
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry);
        for ($i = 0; $i < 5; ++$i) {
            $delivery = $this->claimOne('a'); // no other agent exists
            $refusals[] = $delivery->refusals;
            $this->giveBack('a', $delivery, SettlementKind::Refused, 0, $delivery->failures);
        }
        self::assertSame([0, 1, 2, 3, 3], $refusals);
        self::assertSame([1, 0, 5], $this->statistics('waiting', 'dead', 'released_total'));
    }

    public function testAnOwnerKnowsThatAnotherHasRefusedTheJob(): void
    {
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Refused, 0, 7);
        $this->join('b');
        $delivery = $this->claimOne('b');

        self::assertSame([7, Delivery::MAX_REFUSALS], [$delivery->failures, $delivery->refusals]);
        self::assertEquals([$delivery], $this->broker()->claimedJobs($this->queue(), 'b', []));
        $this->giveBack('b', $delivery);
        $this->broker()->releaseLease($this->queue(), 'b');
        self::assertSame(1, $this->claimSoon('a')->refusals, 'its own refusal');
    }

    public function testAJobThatIsToBeTriedElsewhereIsAnothersIfThereIsOne(): void
    {
        $this->submit(new Job('job', 'frame', 'key'), new Job('next', 'frame', 'key'));
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::RetryElsewhere, 0, 1);
        $this->join('b');
        self::assertSame(['next'], self::ids($this->claim('a')), 'the key is free for another job');
        $this->giveBack('a', new Delivery('next', 1, 0, 0, false, false, false, ''));
        self::assertSame('next', $this->claimOne('b')->id);
        $this->end('b', new Delivery('next', 2, 0, 0, false, false, false, ''));
        $delivery = $this->claimSoon('b');

        self::assertSame(['job', 1], [$delivery->id, $delivery->failures]);
        $this->giveBack('b', $delivery);
        self::assertSame([], $this->claim('a'), 'who refused it last does not get it, whoever had it meanwhile');
        $this->broker()->releaseLease($this->queue(), 'b');
        self::assertSame('job', $this->claimSoon('a')->id, 'there is no other any more');
        self::assertSame([1, 0], $this->statistics('retried_total', 'dead'));
    }

    public function testManyJobsAreSettledAtOnce(): void
    {
        $ids = array_map(static fn(int $i): string => "job-{$i}", range(1, 900));
        $this->submit(...$ids);
        $settlements = [];
        foreach ($this->claim($this->join('a'), 900) as $i => $delivery) {
            $settlements[] = new Settlement(
                $delivery->id,
                $delivery->claimNumber,
                $i % 3 === 0 ? SettlementKind::Retry : ($i % 3 === 1 ? SettlementKind::Done : SettlementKind::Dead),
                frame: 'outcome',
                reason: '{}',
            );
        }

        self::assertSame([], $this->settle('a', ...$settlements));
        self::assertSame(
            [300, 300, 300],
            $this->statistics('waiting', 'done_total', 'dead'),
        );
        self::assertCount(300, $this->claim('a', 1000));
    }
}
