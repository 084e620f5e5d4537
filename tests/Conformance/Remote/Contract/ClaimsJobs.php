<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Job;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * Claims: which jobs they give, in which order.
 *
 * @phpstan-require-extends BrokerContract
 */
trait ClaimsJobs
{
    public function testAClaimSaysForHowLongTheJobWasClaimable(): void
    {
        $this->submit('old');
        Eventually::holds(fn(): bool => $this->statistic('oldest_ms') >= 50, 'it grows old');
        $old = $this->claimOne($this->join('a'));
        self::assertGreaterThanOrEqual(0.05, $old->waitedSeconds);
        self::assertLessThan(30.0, $old->waitedSeconds);
        $this->giveBack('a', $old);

        self::assertLessThan($old->waitedSeconds + 5.0, $this->claimOne('a')->waitedSeconds);
        $known = $this->broker()->claimedJobs($this->queue(), 'a', []);
        self::assertLessThan($old->waitedSeconds + 5.0, $known[0]->waitedSeconds);
    }

    public function testOfAFrameThatIsTooLargeForItsOwnerOnlyTheSizeIsReturned(): void
    {
        $this->submit(new Job('large', str_repeat('x', 1001)), new Job('small', str_repeat('y', 1000)));
        $this->join('a');
        $claimed = array_column(
            $this->broker()->settleAndClaim($this->queue(), 'a', [], 2, 60.0, maxFrameBytes: 1000)->deliveries,
            null,
            'id',
        );

        self::assertSame(['', 1001], [$claimed['large']->frame, $claimed['large']->oversizeBytes]);
        self::assertSame([str_repeat('y', 1000), 0], [$claimed['small']->frame, $claimed['small']->oversizeBytes]);
        [$again] = $this->broker()->claimedJobs($this->queue(), 'a', ['small' => 1], 1000);
        self::assertSame(['large', '', 1001], [$again->id, $again->frame, $again->oversizeBytes]);
        $this->end('a', $claimed['large'], SettlementKind::Dead);
        self::assertSame(1, $this->broker()->retryDeadLetters($this->queue(), ['large']));
        $retried = $this->claimOne('a');
        self::assertSame([str_repeat('x', 1001), 0], [$retried->frame, $retried->oversizeBytes]);
    }

    public function testJobsAreGivenInTheOrderInWhichTheyCameAndNoMoreThanAreWanted(): void
    {
        $this->submit('one', 'two', 'three');
        $this->join('a');

        self::assertSame([], $this->claim('a', 0));
        self::assertSame(['one', 'two'], self::ids($this->claim('a', 2)));
        self::assertSame(['three'], self::ids($this->claim('a', 2)));
        self::assertSame([], $this->claim('a', 2));
    }

    public function testAJobIsGivenToOneOwner(): void
    {
        $this->submit('job');
        $this->join('a');
        $this->join('b');

        self::assertSame(['job'], self::ids($this->claim('a')));
        self::assertSame([], $this->claim('b'));
    }

    public function testReleasedJobsAreClaimedBeforeNewOnes(): void
    {
        $this->submit('one', 'two');
        $this->giveBack($this->join('a'), $this->claim('a', 1)[0]);

        self::assertSame(['one', 'two'], self::ids($this->claim('a')));
    }

    public function testTheClaimsOfAJobAreNumbered(): void
    {
        $this->submit('job');
        $this->join('a');
        foreach ([1, 2, 3] as $number) {
            $delivery = $this->claimOne('a');
            self::assertSame($number, $delivery->claimNumber);
            $this->giveBack('a', $delivery);
        }
    }

    public function testTheFirstClaimOfAJobKnowsOfNothing(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));

        self::assertSame(
            [1, 0, 0, false, false, false],
            [
                $delivery->claimNumber,
                $delivery->crashes,
                $delivery->failures,
                $delivery->cancelled,
                $delivery->lost,
                $delivery->streamed,
            ],
        );
    }

    public function testAFrameArrivesByteForByte(): void
    {
        $frames = ['', "\0\r\n\xff", implode('', array_map(\chr(...), range(0, 255))), random_bytes(1 << 20)];
        $this->submit(
            ...array_map(
                static fn(int $i, string $frame): Job => new Job("job-{$i}", $frame),
                array_keys($frames),
                $frames,
            ),
        );

        foreach ($this->claim($this->join('a')) as $i => $delivery) {
            self::assertTrue($frames[$i] === $delivery->frame, "Frame {$i} is another one");
        }
    }

    public function testAFrameArrivesAsItWasAtEachClaim(): void
    {
        $this->submit(new Job('job', "\0\xff"));
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry, 0, 1);

        self::assertSame("\0\xff", $this->claimOne('a')->frame);
    }

    public function testAnIdMayBeLongAndOdd(): void
    {
        $id = str_pad('{*}:1-0,"\\', 128, '~');
        $this->submit(new Job($id, 'frame', str_repeat("\0", 128)));
        $delivery = $this->claimOne($this->join('a'));
        $this->end('a', $delivery);

        self::assertSame($id, $delivery->id);
        self::assertSame('outcome', $this->outcome($id));
    }

    public function testAnOwnerWithoutALeaseClaimsNothing(): void
    {
        $this->submit('job');

        self::thrown(LeaseLostException::class, fn() => $this->claim('a'));
        self::assertSame(['job'], self::ids($this->claim($this->join('b'))));
    }

    public function testAnOwnerWithTooFewJobsGetsAMessageAboutMore(): void
    {
        $received = $this->post('a');
        $this->join('a');
        self::assertSame([], $this->claim('a'));
        $this->submit('job');

        Eventually::holds(static fn(): bool => $received->jobsAvailable > 0, 'there is a message');
    }

    public function testAnIdleOwnerGetsAMessageAboutAReleasedJob(): void
    {
        $received = $this->post('b');
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        self::assertSame([], $this->claim($this->join('b')));
        $this->giveBack('a', $delivery);

        Eventually::holds(static fn(): bool => $received->jobsAvailable > 0, 'there is a message');
        self::assertSame(['job'], self::ids($this->claim('b')));
    }

    public function testAnIdleAgentThatIsGoneDoesNotGetTheOnlyMessage(): void
    {
        $received = $this->post('b');
        $this->join('a');
        $this->join('b');
        self::assertSame([], $this->claim('a', 20));
        self::assertSame([], $this->claim('b'));
        $this->submit('job');

        Eventually::holds(static fn(): bool => $received->jobsAvailable > 0, 'there is a message');
    }

    public function testCancelledJobsDoNotDelayOthers(): void
    {
        $received = $this->post('a');
        $ids = array_map(static fn(int $i): string => "unwanted-{$i}", range(1, 900));
        $this->submit(...[...$ids, 'job']);
        $this->broker()->cancel($this->queue(), $ids);
        $claimed = self::ids($this->claim($this->join('a'), 2));
        for ($messages = 0; $claimed === []; $claimed = self::ids($this->claim('a', 2))) {
            Eventually::holds(static fn(): bool => $received->jobsAvailable > $messages, 'there is a message');
            $messages = $received->jobsAvailable;
        }

        self::assertSame(['job'], $claimed);
    }

    public function testSettlingAndClaimingIsOneQuestion(): void
    {
        $this->submit('one', 'two');
        $delivery = $this->claim($this->join('a'), 1)[0];
        $claim = $this->broker()->settleAndClaim(
            $this->queue(),
            'a',
            [new Settlement('one', $delivery->claimNumber, SettlementKind::Done, frame: 'outcome')],
            1,
            60.0,
        );

        self::assertSame(['two'], self::ids($claim->deliveries));
        self::assertSame([], $claim->stale);
        self::assertSame('outcome', $this->outcome('one'));
    }

    public function testClaimedJobsThatTheOwnerDoesNotKnowAreReturned(): void
    {
        $this->submit('one', 'two', 'three', 'four');
        $this->join('a');
        $this->giveBack('a', $this->claim('a', 1)[0], SettlementKind::Retry, 1, 2);
        $this->claim('a', 3);
        $this->claim($this->join('b'));
        $held = $this->broker()->claimedJobs($this->queue(), 'a', [
            'one' => 1,
            'two' => 1,
            'four' => 1,
            'unheard-of' => 1,
        ]);
        $byId = array_combine(self::ids($held), $held);
        ksort($byId);

        self::assertSame(['one', 'three'], array_keys($byId));
        self::assertSame(
            [2, 1, 2, 'do one'],
            [$byId['one']->claimNumber, $byId['one']->crashes, $byId['one']->failures, $byId['one']->frame],
        );
        self::assertSame([], $this->broker()->claimedJobs($this->queue(), 'a', ['one' => 2, 'two' => 1, 'three' => 1]));
    }

    public function testKnownJobsThatWereCancelledAreReturned(): void
    {
        $this->submit('one', 'two');
        $this->claim($this->join('a'));
        $this->broker()->cancel($this->queue(), ['two']);
        $held = $this->broker()->claimedJobs($this->queue(), 'a', ['one' => 1, 'two' => 1]);

        self::assertSame(['two'], self::ids($held));
        self::assertSame([1, true], [$held[0]->claimNumber, $held[0]->cancelled]);
    }

    public function testSettledJobsAreNotAmongTheClaimedJobs(): void
    {
        $this->submit('one', 'two');
        $deliveries = $this->claim($this->join('a'));
        $this->end('a', $deliveries[0]);
        $this->giveBack('a', $deliveries[1]);

        self::assertSame([], $this->broker()->claimedJobs($this->queue(), 'a', []));
    }

    public function testAnOwnerWithoutALeaseHasNoJobs(): void
    {
        self::thrown(LeaseLostException::class, fn() => $this->broker()->claimedJobs($this->queue(), 'a', []));
    }
}
