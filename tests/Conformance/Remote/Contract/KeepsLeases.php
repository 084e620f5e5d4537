<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Internal\Clock;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

use function Amp\delay;

/**
 * Leases: how long a job belongs to an agent.
 *
 * @phpstan-require-extends BrokerContract
 */
trait KeepsLeases
{
    public function testALeaseThatIsRenewedDoesNotEnd(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a', 1.0));
        $this->join('b');
        for ($end = Clock::now() + 1.5; Clock::now() < $end; delay(0.02)) {
            $this->broker()->renewLease($this->queue(), 'a', 1.0, false, '{}');
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}');
        }

        $this->end('a', $delivery);
        self::assertSame([], $this->claim('b'));
    }

    public function testTheJobsOfALostOwnerAreOthers(): void
    {
        $this->submit('job');
        $this->claimOne($this->join('a', self::SHORT));
        $delivery = $this->claimSoon($this->join('b'));

        self::assertSame(
            ['job', 2, 1, 0, true, 'do job'],
            [
                $delivery->id,
                $delivery->claimNumber,
                $delivery->crashes,
                $delivery->failures,
                $delivery->lost,
                $delivery->frame,
            ],
        );
        self::assertSame(1, $this->statistic('lost_total'));
        $this->end('b', $delivery);
        self::assertSame('outcome', $this->outcome('job'));
    }

    public function testTheOwnerThatFindsAnEndedLeaseGetsAMessage(): void
    {
        $this->submit('one', 'two');
        $this->claim($this->join('a', self::SHORT));
        $received = $this->post('b');
        $this->join('b');

        Eventually::holds(function () use ($received): bool {
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}');

            return $received->lostAgents !== [];
        }, 'there is a message');
        self::assertSame(['a' => 2], $received->lostAgents);
        self::assertSame([2, 0], $this->statistics('lost_total', 'released_total'));
    }

    public function testEachLossIsCountedBesideWhatFailed(): void
    {
        $this->submit('job');
        $this->giveBack($this->join('x'), $this->claimOne('x'), SettlementKind::Retry, 1, 2);
        foreach (['a', 'b'] as $i => $owner) {
            $delivery = $this->claimSoon($this->join($owner, self::LONG));
            self::assertSame([1 + $i, 2], [$delivery->crashes, $delivery->failures]);
            $this->broker()->renewLease($this->queue(), $owner, self::SHORT, false, '{}');
        }
        $delivery = $this->claimSoon($this->join('c'));

        self::assertSame([3, 2, 4], [$delivery->crashes, $delivery->failures, $delivery->claimNumber]);
    }

    public function testOnlyJobsThatMayHaveBegunCountAsCrashed(): void
    {
        $this->submit('one', 'two', 'three', 'four');
        $this->join('a', self::SHORT);
        $claim = fn(int $maxClaims, int $first, ?int $lastStarted = null): array => $this->broker()
            ->settleAndClaim($this->queue(), 'a', [], $maxClaims, self::RETENTION, $first, $lastStarted)
            ->deliveries;
        self::assertCount(2, $claim(2, 1, 2));
        self::assertCount(2, $claim(2, 3));
        self::assertSame([], $claim(0, 5, 3));
        $this->join('b');
        $crashes = [];
        Eventually::holds(function () use (&$crashes): bool {
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}');
            foreach ($this->claim('b') as $delivery) {
                $crashes[$delivery->id] = $delivery->crashes;
            }

            return \count($crashes) === 4;
        }, 'all are claimed again');

        ksort($crashes);
        self::assertSame(['four' => 0, 'one' => 1, 'three' => 1, 'two' => 1], $crashes);
    }

    public function testALostOwnerIsNotTheOwnerAgain(): void
    {
        $this->submit('job');
        $this->claimOne($this->join('a', self::SHORT));
        Eventually::holds(fn(): bool => $this->statistic('agents') === 0, 'its lease has ended');

        self::thrown(
            LeaseLostException::class,
            fn() => $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}'),
        );
        self::thrown(LeaseLostException::class, fn() => $this->broker()->claimedJobs($this->queue(), 'a', []));
        $this->claimSoon($this->join('b'));
        self::thrown(
            LeaseLostException::class,
            fn() => $this->broker()->putItems($this->queue(), 'a', 'job', 1, 0, ['item']),
        );
        self::thrown(
            LeaseLostException::class,
            fn() => $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}'),
        );
    }

    public function testAnOwnerThatNeverJoinedCannotRenew(): void
    {
        self::thrown(
            LeaseLostException::class,
            fn() => $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}'),
        );
    }

    public function testJobsOfALostOwnerGoBeforeNewOnes(): void
    {
        $this->submit('old');
        $this->claimOne($this->join('a', self::SHORT));
        $this->submit('new');
        $this->join('b');
        Eventually::holds(function (): bool {
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}');

            return $this->statistic('waiting') === 2;
        }, 'it may be claimed again');

        self::assertSame(['old', 'new'], self::ids($this->claim('b')));
    }

    public function testAllJobsOfAllLostOwnersAreFound(): void
    {
        $this->submit(...array_map(static fn(int $i): string => "job-{$i}", range(1, 500)));
        for ($owner = 1; $owner <= 10; ++$owner) {
            $this->claim($this->join("lost-{$owner}"), 50);
        }
        for ($owner = 1; $owner <= 10; ++$owner) {
            $this->broker()->renewLease($this->queue(), "lost-{$owner}", self::SHORT, false, '{}');
        }
        $this->join('b');
        Eventually::holds(function (): bool {
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}');

            return $this->statistic('waiting') === 500;
        }, 'all may be claimed again');
        $deliveries = $this->claim('b', 1000);

        self::assertCount(500, array_unique(self::ids($deliveries)));
        self::assertSame(1, $this->statistic('agents'));
    }

    public function testAnIdleOwnerGetsAMessageAboutJobsOfALostOwner(): void
    {
        $received = $this->post('b');
        $this->submit('job');
        $this->claimOne($this->join('a', self::SHORT));
        $this->join('b');
        $this->claim('b');

        Eventually::holds(function () use ($received): bool {
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}');

            return $received->jobsAvailable > 0;
        }, 'there is a message');
    }

    public function testJobsOfAnOwnerThatLeavesAreClaimableAtOnce(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->broker()->releaseLease($this->queue(), 'a');

        self::assertSame([0, 0, 1], $this->statistics('agents', 'lost_total', 'released_total'));
        self::thrown(LeaseLostException::class, fn() => $this->end('a', $delivery));
        self::thrown(
            LeaseLostException::class,
            fn() => $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}'),
        );
        $again = $this->claimOne($this->join('b'));
        self::assertSame(['job', 2, 0], [$again->id, $again->claimNumber, $again->crashes]);
    }

    /** Agents that live renew their leases after the engine was away. */
    public function testLeasesThatEndDuringAnOutageAreExtended(): void
    {
        $this->submit('one', 'two');
        $this->claim($this->join('lives', self::SHORT), 1);
        $this->claim($this->join('dead', self::SHORT), 1);
        delay(4 * self::SHORT);
        $this->join('a', 2 * self::SHORT);
        self::assertSame(3, $this->statistic('agents'));
        $this->broker()->releaseLease($this->queue(), 'lives');
        $lost = [];
        Eventually::holds(function () use (&$lost): bool {
            $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}');
            foreach ($this->claim('a') as $delivery) {
                $lost[$delivery->id] = $delivery->crashes;
            }

            return \count($lost) === 2;
        }, 'both may be claimed');

        self::assertSame(['one' => 0, 'two' => 1], $lost);
    }

    /** Agents come and go. */
    public function testALeaseGoesOnForAWhileOnceOnly(): void
    {
        $this->submit('job');
        $this->claimOne($this->join('dead', self::SHORT));
        for ($i = 1; $i <= 2; ++$i) {
            delay(2 * self::SHORT);
            $this->join("short-lived-{$i}", self::SHORT);
        }
        delay(2 * self::SHORT);

        self::assertSame('job', $this->claimOne($this->join('a', self::SHORT))->id);
    }

    public function testAnUnknownOwnerMayLeave(): void
    {
        $this->broker()->releaseLease($this->queue(), 'a');

        self::assertSame(0, $this->statistic('agents'));
    }

    public function testJobsBelongToAnOwnerOnAnyConnection(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $other = $this->connect();
        $other->renewLease($this->queue(), 'a', self::LONG, false, '{}');

        self::assertSame(['job'], self::ids($other->claimedJobs($this->queue(), 'a', [])));
        self::assertSame(
            [],
            $other->settleAndClaim(
                $this->queue(),
                'a',
                [new Settlement('job', $delivery->claimNumber, SettlementKind::Done, frame: 'outcome')],
                0,
                60.0,
            )->stale,
        );
        self::assertSame('outcome', $this->outcome('job'));
    }
}
