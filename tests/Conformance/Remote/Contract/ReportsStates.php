<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

use function Amp\delay;

/**
 * Inspection and maintenance of a queue by operators.
 *
 * @phpstan-require-extends BrokerContract
 */
trait ReportsStates
{
    public function testAnEmptyQueueHasNothing(): void
    {
        $statistics = $this->broker()->statistics($this->queue());
        self::assertSame([0], array_values(array_unique($statistics)));
        self::assertSame(
            [],
            array_diff(
                ['waiting', 'running', 'delayed', 'blocked', 'dead', 'agents', 'oldest_ms'],
                array_keys($statistics),
            ),
        );

        foreach (JobStatus::cases() as $status) {
            self::assertSame([], $this->listed($status));
        }
    }

    public function testAQueueIsNamedAsSoonAsItHasHadAJobOrAnAgent(): void
    {
        $queues = fn(): array => array_values(array_filter(
            $this->broker()->queues(),
            fn(string $name): bool => str_starts_with($name, $this->queue()),
        ));
        self::assertSame([], $queues());
        $this->broker()->renewLease("{$this->queue()}-b", 'owner', 60.0, true, '{}');
        $this->submit('one');
        self::assertSame([$this->queue(), "{$this->queue()}-b"], $queues());
        $this->broker()->cancel($this->queue(), ['one']);
        self::assertSame([$this->queue(), "{$this->queue()}-b"], $queues());
    }

    public function testFiguresTellWhereEachJobIs(): void
    {
        $this->submit(
            'runs',
            'done',
            'dead',
            'again',
            new Job('blocked', 'frame', 'key'),
            new Job('holds', 'frame', 'key'),
            new Job('delayed', 'frame', delay: 60.0),
        );
        $deliveries = $this->claim($this->join('a'));
        $byId = array_combine(self::ids($deliveries), $deliveries);
        $this->end('a', $byId['done']);
        $this->end('a', $byId['dead'], SettlementKind::Dead);
        $this->giveBack('a', $byId['again'], SettlementKind::Retry, 0, 1);
        $this->submit('new');
        $statistics = $this->broker()->statistics($this->queue());

        self::assertSame(
            ['waiting' => 2, 'running' => 2, 'delayed' => 1, 'blocked' => 1, 'dead' => 1, 'agents' => 1],
            array_intersect_key(
                $statistics,
                ['waiting' => 0, 'running' => 0, 'delayed' => 0, 'blocked' => 0, 'dead' => 0, 'agents' => 0],
            ),
        );
        self::assertSame(
            [8, 1, 1, 1],
            [
                $statistics['submitted_total'],
                $statistics['done_total'],
                $statistics['died_total'],
                $statistics['retried_total'],
            ],
        );
    }

    public function testTheAgeOfTheOldestJobIsOfThoseThatMayBeClaimed(): void
    {
        $this->submit('one');
        Eventually::holds(fn(): bool => $this->statistic('oldest_ms') >= 50, 'it grows old');
        $this->claimOne($this->join('a'));

        self::assertSame(0, $this->statistic('oldest_ms'));
        $this->submit('two');
        Eventually::holds(fn(): bool => $this->statistic('oldest_ms') > 0, 'another one grows old');
    }

    public function testThoseThatWaitAreListedInTheOrderInWhichTheyWillBeClaimed(): void
    {
        $this->submit('one', 'two', 'three', 'four', 'five');
        $deliveries = $this->claim($this->join('a'), 3);
        $this->giveBack('a', $deliveries[1]);
        $this->broker()->cancel($this->queue(), ['four']);
        $waiting = $this->broker()->listJobs($this->queue(), JobStatus::Waiting, 10);

        self::assertSame(['two', 'five'], array_keys($waiting));
        self::assertGreaterThan(0, $waiting['five']['since']);
        self::assertSame(['two'], array_keys($this->broker()->listJobs($this->queue(), JobStatus::Waiting, 1)));
        self::assertSame(['two', 'five'], self::ids($this->claim('a')));
    }

    public function testWaitingJobsAreListedAlsoWhenManyRun(): void
    {
        $this->submit(...array_map(static fn(int $i): string => "job-{$i}", range(1, 30)));
        $this->claim($this->join('a'), 28);

        self::assertSame(
            ['job-29', 'job-30'],
            array_keys($this->broker()->listJobs($this->queue(), JobStatus::Waiting, 2)),
        );
    }

    public function testThoseThatRunAreListedWithTheirOwners(): void
    {
        $this->submit('one', 'two');
        $this->giveBack($this->join('a'), $this->claim('a', 1)[0], SettlementKind::Retry, 1, 2);
        $this->claim('a', 1);
        $this->claim($this->join('b'), 1);
        $running = $this->broker()->listJobs($this->queue(), JobStatus::Running, 10);
        ksort($running);

        self::assertSame(['one', 'two'], array_keys($running));
        foreach (['one' => ['a', 1, 2], 'two' => ['b', 0, 0]] as $id => $expected) {
            $job = $running[$id];
            self::assertSame($expected, [$job['owner'], $job['crashes'], $job['failures']]);
        }
        self::assertGreaterThan(0, $running['one']['since']);
        self::assertCount(1, $this->broker()->listJobs($this->queue(), JobStatus::Running, 1));
    }

    public function testThoseThatAreDelayedAreListedWithTheirFailures(): void
    {
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry, 1, 2, 60.0);
        $delayed = $this->broker()->listJobs($this->queue(), JobStatus::Delayed, 10)['job'];

        self::assertSame([1, 2], [$delayed['crashes'], $delayed['failures']]);
    }

    public function testThoseThatDiedLastAreListedFirst(): void
    {
        $this->submit('one', 'two', 'three');
        foreach ($this->claim($this->join('a')) as $i => $delivery) {
            $this->end('a', $delivery, SettlementKind::Dead, 'outcome', "{\"reason\":\"{$i}\"}");
            delay(0.005); // the engine's clock may have a resolution of 1 ms
        }
        $dead = $this->broker()->listJobs($this->queue(), JobStatus::Dead, 2);

        self::assertSame(['three', 'two'], array_keys($dead));
        self::assertSame('2', $dead['three']['reason']);
        self::assertGreaterThanOrEqual($dead['two']['died'], $dead['three']['died']);
    }

    public function testAListHasTheBeginningOfEachReasonAndAJobTheWholeReason(): void
    {
        $reasons = [
            'short' => ['RuntimeException: no disk', ''],
            'trace' => ['RuntimeException: "no disk" in App\\name', "\n" . str_repeat("#1 /srv/app.php(1)\n", 3000)],
            'escaped' => ['Ünlesbar: 読めない', "\n" . str_repeat('é', 9000)],
            'characters' => ['x' . str_repeat('é', 249), str_repeat('é', 9000) . "\nend"],
            'line' => [str_repeat('x', 500), str_repeat('x', 60_000)],
            'quotes' => [str_repeat('"', 500), str_repeat('"', 9000)],
        ];
        $this->submit(...array_keys($reasons));
        foreach ($this->claim($this->join('a')) as $delivery) {
            $details = ['reason' => implode('', $reasons[$delivery->id]), 'attempts' => 3, 'owner' => 'a:1:2'];
            $json = json_encode($details, \JSON_THROW_ON_ERROR);
            $this->end('a', $delivery, SettlementKind::Dead, 'outcome', $json);
        }
        $dead = $this->broker()->listJobs($this->queue(), JobStatus::Dead, 10);
        ksort($dead);
        ksort($reasons);

        self::assertSame(array_map(static fn(array $reason): string => $reason[0], $reasons), array_map(
            static fn(array $details): int|float|string => $details['reason'],
            $dead,
        ));
        self::assertSame(array_fill(0, 6, 3), array_column($dead, 'attempts'));
        self::assertSame(array_fill(0, 6, 'a:1:2'), array_column($dead, 'owner'));
        foreach ($reasons as $id => $reason) {
            self::assertSame(implode('', $reason), $this->found($id, JobStatus::Dead)['reason']);
        }
    }

    public function testOneJobIsFoundByItsIdAndItsStatus(): void
    {
        $this->submit(new Job('runs', 'frame', 'one'), new Job('blocked', 'frame', 'one'), new Job('dies', 'f', 'two'));
        $this->submit('tried', 'done', new Job('waits', 'frame', 'three'));
        $byId = array_column($this->claim($this->join('a'), 4), null, 'id');
        $this->end('a', $byId['dies'], SettlementKind::Dead, 'outcome', '{"reason":"no disk","attempts":3}');
        $this->end('a', $byId['done']);
        $this->giveBack('a', $byId['tried'], SettlementKind::Retry, 1, 2, 60.0);

        $running = $this->found('runs', JobStatus::Running);
        self::assertSame(['a', 0, 'one'], [$running['owner'], $running['crashes'], $running['exclusive_key']]);
        $waiting = ['crashes' => 0, 'failures' => 0];
        self::assertEquals(
            [...$waiting, 'blocked' => 1, 'exclusive_key' => 'one'],
            $this->found('blocked', JobStatus::Waiting),
        );
        self::assertEquals([...$waiting, 'exclusive_key' => 'three'], $this->found('waits', JobStatus::Waiting));
        $delayed = $this->found('tried', JobStatus::Delayed);
        self::assertSame([1, 2], [$delayed['crashes'], $delayed['failures']]);
        self::assertGreaterThan(0, $delayed['due']);
        $dead = $this->found('dies', JobStatus::Dead);
        self::assertSame(['no disk', 3, 'two'], [$dead['reason'], $dead['attempts'], $dead['exclusive_key']]);
        self::assertGreaterThan(0, $dead['died']);
        foreach ([['done', JobStatus::Done], ['unheard-of', JobStatus::Waiting], ['runs', JobStatus::Dead]] as $other) {
            self::assertSame([], $this->broker()->listJobs($this->queue(), $other[1], 1, $other[0]));
        }
    }

    public function testADeadLetterIsAJobAgainAsIfItHadNeverRun(): void
    {
        $this->submit('job');
        $this->join('a');
        $this->giveBack('a', $this->claimOne('a'), SettlementKind::Retry, 1, 2);
        $this->end('a', $this->claimOne('a'), SettlementKind::Dead);

        self::assertSame(1, $this->broker()->retryDeadLetters($this->queue(), ['job', 'unheard-of', 'job']));
        self::assertNull($this->outcome('job'));
        self::assertSame([0, 1, 1], $this->statistics('dead', 'waiting', 'dead_letters_retried_total'));
        $delivery = $this->claimOne('a');
        self::assertSame(
            [1, 0, 0, false, 'do job'],
            [$delivery->claimNumber, $delivery->crashes, $delivery->failures, $delivery->lost, $delivery->frame],
        );
        $this->end('a', $delivery);
        self::assertSame('outcome', $this->outcome('job'));
    }

    public function testAnIdleOwnerGetsAMessageAboutARetriedDeadLetter(): void
    {
        $received = $this->post('a');
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead);
        self::assertSame([], $this->claim('a'));
        $this->broker()->retryDeadLetters($this->queue(), ['job']);

        Eventually::holds(static fn(): bool => $received->jobsAvailable > 0, 'there is a message');
    }

    public function testAMailboxOfALookupGetsTheOutcomeOfARetriedDeadLetter(): void
    {
        $received = $this->post();
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead, 'first');
        $this->broker()->retryDeadLetters($this->queue(), ['job']);
        $this->broker()->attach($this->queue(), ['job'], 'client');
        $this->end('a', $this->claimOne('a'), SettlementKind::Done, 'second');

        Eventually::holds(
            static fn(): bool => $received->outcomes === [['job' => 'first'], ['job' => 'second']],
            'there are messages',
        );
    }

    public function testADeadLetterThatIsDeletedIsGone(): void
    {
        $this->submit('one', 'two', 'runs');
        $deliveries = $this->claim($this->join('a'));
        $this->end('a', $deliveries[0], SettlementKind::Dead);
        $this->end('a', $deliveries[1], SettlementKind::Dead);

        self::assertSame(1, $this->broker()->deleteDeadLetters($this->queue(), ['one', 'runs', 'unheard-of']));
        self::assertSame(['two'], $this->listed(JobStatus::Dead));
        self::assertSame(0, $this->broker()->retryDeadLetters($this->queue(), ['one']));
        self::assertSame([1, 1], $this->statistics('dead', 'running'));
        self::assertNull($this->broker()->status($this->queue(), 'one'));
        $again = [new Job('one', 'do one'), new Job('two', 'do two')];
        $this->broker()->submit($this->queue(), $again, 1000, 'client', true);
        self::assertSame(['one'], $this->listed(JobStatus::Waiting));
    }

    public function testWhereNothingIsLostNothingIsRepaired(): void
    {
        self::assertSame(0, $this->broker()->repair($this->queue()));
        $this->submit(
            'waits',
            'runs',
            'done',
            new Job('delayed', 'frame', delay: 60.0),
            new Job('holds', 'frame', 'key'),
            new Job('blocked', 'frame', 'key'),
        );
        $deliveries = $this->claim($this->join('a'));
        $this->giveBack('a', $deliveries[0]);
        $this->end('a', $deliveries[2]);

        self::assertSame(0, $this->broker()->repair($this->queue()));
        self::assertSame(['waits'], self::ids($this->claim('a')));
    }

    public function testTheStatusOfAJobIsReturnedWithoutSideEffects(): void
    {
        $received = $this->post('looks');
        $this->submit('waits', 'runs', 'done', 'dead', new Job('delayed', 'frame', delay: 60.0));
        $byId = array_column($this->claim($this->join('a'), 4), null, 'id');
        $this->giveBack('a', $byId['waits']);
        $this->end('a', $byId['done']);
        $this->end('a', $byId['dead'], SettlementKind::Dead);
        $status = fn(string $id): ?JobStatus => $this->broker()->status($this->queue(), $id);

        self::assertSame(
            [JobStatus::Waiting, JobStatus::Running, JobStatus::Done, JobStatus::Dead, JobStatus::Delayed, null],
            array_map($status, ['waits', 'runs', 'done', 'dead', 'delayed', 'unheard-of']),
        );
        $this->end('a', $byId['runs']);
        self::assertSame(JobStatus::Done, $status('runs'));
        self::assertSame([], $received->outcomes);
    }

    public function testOnlySoManyDeadLettersAreKeptAndOnlyForSoLong(): void
    {
        $this->submit('one', 'two', 'three');
        foreach ($this->claim($this->join('a')) as $delivery) {
            $this->end('a', $delivery, SettlementKind::Dead);
        }
        $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}', 2, 3600.0);
        self::assertCount(2, $this->listed(JobStatus::Dead));
        Eventually::holds(function (): bool {
            $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}', 2, 1.0);

            return $this->statistic('dead') === 0;
        }, 'they are too old');

        self::assertSame(3, $this->statistic('forgotten_total'));
    }

    /** @return array<string, int|float|string> details of a job */
    private function found(string $id, JobStatus $status): array
    {
        self::assertSame($status, $this->broker()->status($this->queue(), $id));
        $found = $this->broker()->listJobs($this->queue(), $status, 1, $id);
        self::assertSame([$id], array_keys($found));

        return $found[$id];
    }
}
