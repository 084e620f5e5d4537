<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Durability;
use Spindle\Remote\Job;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\Conformance\Remote\BrokerContract;

/**
 * Submissions.
 *
 * @phpstan-require-extends BrokerContract
 */
trait AcceptsJobs
{
    public function testADurabilityIsReturned(): void
    {
        self::assertContains($this->broker()->durability(), Durability::cases());
    }

    public function testAJobIsStoredOnceItIsAccepted(): void
    {
        self::assertFalse($this->outcome('job'));
        $this->submit('job');

        self::assertNull($this->outcome('job'));
        self::assertSame(['job'], self::ids($this->claim($this->join('a'))));
    }

    public function testAnEmptyBatchIsAccepted(): void
    {
        self::assertSame(0, $this->broker()->submit($this->queue(), [], 10, 'client', true)->accepted);
    }

    public function testAJobThatIsSubmittedAgainIsAddedOnce(): void
    {
        $this->submit('one');

        self::assertSame(2, $this->again('one', 'two'));
        self::assertSame(2, $this->again('two', 'two'));
        self::assertSame(['one', 'two'], self::ids($this->claim($this->join('a'))));
        self::assertSame(2, $this->statistic('submitted_total'));
    }

    public function testAJobThatIsSubmittedAgainKeepsItsFrame(): void
    {
        $this->submit('job');
        $this->broker()->submit($this->queue(), [new Job('job', 'another')], 10, 'client', true);

        self::assertSame('do job', $this->claimOne($this->join('a'))->frame);
    }

    public function testARunningJobIsNotAddedAgain(): void
    {
        $this->submit('job');
        $this->claimOne($this->join('a'));

        self::assertSame(1, $this->again('job'));
        self::assertSame([], $this->claim($this->join('b')));
    }

    public function testADelayedJobIsNotAddedAgain(): void
    {
        $this->submit(new Job('job', 'frame', delay: 60.0));

        self::assertSame(1, $this->again('job'));
        self::assertSame([], $this->claim($this->join('a')));
    }

    public function testAJobWithAnOutcomeIsNotAddedAgain(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'));

        self::assertSame(1, $this->again('job'));
        self::assertSame([], $this->claim('a'));
        self::assertSame('outcome', $this->outcome('job'));
    }

    public function testADeadLetterIsNotAddedAgain(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead);

        self::assertSame(1, $this->again('job'));
        self::assertSame([], $this->claim('a'));
        self::assertSame(1, $this->statistic('dead'));
    }

    public function testAnIdOfADifferentJobIsAConflictInAnyStateOfThatJob(): void
    {
        $seal = str_repeat('s', 42);
        $ids = ['waits', 'delayed', 'blocked', 'runs', 'done', 'dead', 'revived'];
        $this->submit(
            ...array_map(
                static fn(string $id): Job => new Job(
                    $id,
                    "{$seal}do {$id}",
                    $id === 'blocked' || $id === 'runs' ? 'key' : '',
                    $id === 'delayed' ? 60.0 : 0.0,
                ),
                ['runs', 'done', 'dead', 'revived', 'blocked', 'delayed'],
            ),
        );
        foreach ($this->claim($this->join('a')) as $delivery) {
            match ($delivery->id) {
                'dead', 'revived' => $this->end('a', $delivery, SettlementKind::Dead),
                'done' => $this->end('a', $delivery),
                default => null,
            };
        }
        $this->broker()->retryDeadLetters($this->queue(), ['revived']);
        $this->submit(new Job('waits', "{$seal}do waits"));
        $again = fn(string $seal, string $what): SubmitResult => $this->broker()->submit(
            $this->queue(),
            array_map(static fn(string $id): Job => new Job($id, "{$seal}{$what} {$id}"), [...$ids, 'new']),
            1000,
            'client',
            true,
        );

        self::assertEquals(new SubmitResult(8), $again($seal, 'do'));
        self::assertEquals(new SubmitResult(8), $again(str_repeat('t', 42), 'do'), 'another key has signed them');
        self::assertEquals(new SubmitResult(8, range(0, 7)), $again($seal, 'undo'));
        $this->broker()->dropOutcomes($this->queue(), ['done']);
        self::assertSame([0, 1, 2, 3, 5, 6, 7], $again($seal, 'undo')->conflicts, 'a forgotten job has no id');
    }

    public function testTwoJobsOfOneIdThatAreSubmittedTogetherAreAConflict(): void
    {
        $seal = str_repeat('s', 42);
        $jobs = array_map(static fn(string $frame): Job => new Job('job', "{$seal}{$frame}"), ['one', 'two', 'one']);

        self::assertEquals(new SubmitResult(3, [1]), $this->broker()->submit($this->queue(), $jobs, 1, 'client', true));
    }

    public function testAFullQueueRefusesTheNewest(): void
    {
        self::assertSame(
            2,
            $this->broker()->submit($this->queue(), self::jobs('one', 'two', 'three'), 2, 'client', false)->accepted,
        );
        self::assertSame(0, $this->broker()->submit($this->queue(), self::jobs('four'), 2, 'client', true)->accepted);
        self::assertFalse($this->outcome('three'));
        self::assertFalse($this->outcome('four'));

        self::assertSame(['one', 'two'], self::ids($this->claim($this->join('a'))));
    }

    public function testRunningAndDelayedJobsCountAgainstTheLimit(): void
    {
        $this->submit('runs', new Job('delayed', 'frame', delay: 60.0));
        $this->claimOne($this->join('a'));

        self::assertSame(
            1,
            $this->broker()->submit($this->queue(), self::jobs('one', 'two'), 3, 'client', false)->accepted,
        );
    }

    public function testADeadLetterDoesNotCountAgainstTheLimit(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead);

        self::assertSame(1, $this->broker()->submit($this->queue(), self::jobs('one'), 1, 'client', false)->accepted);
    }

    public function testAFinishedJobDoesNotCountAgainstTheLimit(): void
    {
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'));

        self::assertSame(1, $this->broker()->submit($this->queue(), self::jobs('one'), 1, 'client', false)->accepted);
    }

    public function testAFullQueueAcceptsJobsThatItHasAlready(): void
    {
        $this->broker()->submit($this->queue(), self::jobs('one', 'two'), 2, 'client', false);

        self::assertSame(
            2,
            $this->broker()->submit($this->queue(), self::jobs('one', 'two', 'three'), 2, 'client', true)->accepted,
        );
    }

    public function testTheLargestBatchIsAcceptedAtOnce(): void
    {
        $jobs = array_map(
            static fn(int $i): Job => new Job("job-{$i}", "frame {$i}", $i % 2 === 0 ? "key {$i}" : ''),
            range(1, 4000),
        );
        self::assertSame(4000, $this->broker()->submit($this->queue(), $jobs, 4000, 'client', false)->accepted);
        self::assertSame(4000, $this->broker()->submit($this->queue(), $jobs, 4000, 'client', true)->accepted);

        self::assertSame(
            array_map(static fn(Job $job): string => $job->id, $jobs),
            self::ids($this->claim($this->join('a'), 4000)),
        );
    }

    public function testQueuesHaveNothingInCommon(): void
    {
        $this->submit('job');
        self::assertSame(
            1,
            $this->broker()->submit("{$this->queue()}.other", self::jobs('job'), 1, 'client', true)->accepted,
        );
        $this->broker()->renewLease("{$this->queue()}.other", 'a', self::LONG, true, '{}');
        $this->broker()->settleAndClaim("{$this->queue()}.other", 'a', [], 10, 60.0);

        self::assertSame(['job'], self::ids($this->claim($this->join('a'))));
    }

    /** Submits jobs that may have been submitted before. */
    private function again(string ...$ids): int
    {
        return $this->broker()->submit($this->queue(), self::jobs(...$ids), 1000, 'client', true)->accepted;
    }

    /** @return list<Job> */
    private static function jobs(string ...$ids): array
    {
        return array_map(static fn(string $id): Job => new Job($id, "do {$id}"), array_values($ids));
    }
}
