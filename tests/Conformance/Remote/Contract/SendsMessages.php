<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\MailboxMessage;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * Messages that arrive in mailboxes without a request.
 *
 * @phpstan-require-extends BrokerContract
 */
trait SendsMessages
{
    public function testAnOutcomeComesToTheMailboxOfItsJob(): void
    {
        $received = $this->post();
        $other = $this->post('other');
        $this->submit('one', 'two', 'three', 'four');
        [$one, $two, $three, $four] = $this->claim($this->join('a'));
        $this->giveBack('a', $four, SettlementKind::Retry, 0, 1);
        $this->end('a', $one, SettlementKind::Done, "\0done\xff");
        $this->end('a', $two, SettlementKind::Dead, '');
        $this->end('a', $three, SettlementKind::Cancelled, 'cancelled');

        Eventually::holds(static fn(): bool => \count($received->outcomes) === 3, 'the messages are there');
        self::assertSame([['one' => "\0done\xff"], ['two' => ''], ['three' => 'cancelled']], $received->outcomes);
        self::assertSame([], $other->outcomes);
    }

    public function testOutcomesAtOnceAllCome(): void
    {
        $received = $this->post();
        $this->submit(...array_map(static fn(int $i): string => "job-{$i}", range(1, 500)));
        $settlements = $expected = [];
        foreach ($this->claim($this->join('a'), 500) as $delivery) {
            $settlements[] = new Settlement(
                $delivery->id,
                $delivery->claimNumber,
                SettlementKind::Done,
                frame: "of {$delivery->id}",
            );
            $expected[] = [$delivery->id => "of {$delivery->id}"];
        }
        $this->settle('a', ...$settlements);

        Eventually::holds(static fn(): bool => \count($received->outcomes) >= 500, 'the messages are there');
        self::assertSame($expected, $received->outcomes);
    }

    public function testAnOutcomeComesAfterTheJobWasTriedAgain(): void
    {
        $received = $this->post();
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry, 0, 1, self::SHORT);
        $this->end('a', $this->claimSoon('a'));

        Eventually::holds(static fn(): bool => $received->outcomes === [['job' => 'outcome']], 'there is a message');
    }

    public function testAnOutcomeComesAfterAnOwnerWasLost(): void
    {
        $received = $this->post();
        $this->submit('job');
        $this->claimOne($this->join('a', self::SHORT));
        $this->end('b', $this->claimSoon($this->join('b')));

        Eventually::holds(static fn(): bool => $received->outcomes === [['job' => 'outcome']], 'there is a message');
    }

    public function testALargeOutcomeIsToBeLookedFor(): void
    {
        $received = $this->post();
        $large = random_bytes(1 << 20);
        $inline = random_bytes(65536);
        $this->submit('large', 'inline');
        [$first, $second] = $this->claim($this->join('a'));
        $this->end('a', $first, SettlementKind::Done, $large);
        $this->end('a', $second, SettlementKind::Done, $inline);

        Eventually::holds(static fn(): bool => \count($received->outcomes) === 2, 'the messages are there');
        self::assertTrue($received->outcomes === [['large' => ''], ['inline' => $inline]]);
        self::assertTrue($this->outcome('large') === $large);
    }

    public function testTheStatesOfAllJobsAreReturned(): void
    {
        $this->submit('waits', 'done');
        $done = $this->claim($this->join('a'))[1];
        $this->end('a', $done);
        $states = $this->broker()->attach($this->queue(), ['done', 'unheard-of', 'waits'], 'client');

        self::assertSame(['done', 'unheard-of', 'waits'], array_keys($states));
        self::assertSame(
            [true, false, true],
            [$states['done']->known, $states['unheard-of']->known, $states['waits']->known],
        );
        self::assertSame(
            ['outcome', null, null],
            [$states['done']->outcome, $states['unheard-of']->outcome, $states['waits']->outcome],
        );
        self::assertSame([], $this->broker()->attach($this->queue(), [], 'client'));
    }

    public function testOutcomesForWhichAnAnswerHasNoRoomAreAskedForByThemselves(): void
    {
        $this->submit('one', 'two', 'three');
        $outcome = str_repeat('x', 3 << 20);
        foreach ($this->claim($this->join('a')) as $delivery) {
            $this->end('a', $delivery, frame: $outcome);
        }
        $ids = ['one', 'two', 'three'];
        foreach ($this->broker()->attach($this->queue(), $ids, 'client') as $id => $state) {
            self::assertSame([true, true], [$state->known, $state->hasOutcome]);
            self::assertContains($state->outcome, [null, $outcome]);
            self::assertTrue($this->outcome($id) === $outcome);
        }
    }

    public function testAMailboxOfALookupGetsTheOutcome(): void
    {
        $client = $this->post();
        $second = $this->post('second');
        $third = $this->post('third');
        $this->submit('waits', 'runs');
        $this->broker()->attach($this->queue(), ['waits', 'runs'], 'second');
        [$waits, $runs] = $this->claim($this->join('a'));
        $this->broker()->attach($this->queue(), ['runs', 'waits'], 'third');
        $this->end('a', $waits);
        $this->end('a', $runs);

        foreach ([$client, $second, $third] as $received) {
            Eventually::holds(
                static fn(): bool => $received->outcomes === [['waits' => 'outcome'], ['runs' => 'outcome']],
                'the messages are there',
            );
        }
    }

    public function testAMailboxOfTwoLookupsGetsOneMessage(): void
    {
        $client = $this->post();
        $other = $this->post('other');
        $this->submit('job', 'last');
        foreach ([1, 2] as $time) {
            $this->broker()->attach($this->queue(), ['job'], 'other');
            $this->broker()->attach($this->queue(), ['job'], 'client');
        }
        [$job, $last] = $this->claim($this->join('a'));
        $this->broker()->report($this->queue(), 'a', 'job', 1, 'report');
        Eventually::holds(
            static fn(): bool => $client->reports !== [] && $other->reports !== [],
            'the reports are there',
        );
        $this->end('a', $job);
        $this->broker()->attach($this->queue(), ['last'], 'other');
        $this->end('a', $last);

        foreach ([$client, $other] as $received) {
            Eventually::holds(
                static fn(): bool => \in_array(['last' => 'outcome'], $received->outcomes, true),
                'the last message is there',
            );
            self::assertSame([['job' => 'outcome'], ['last' => 'outcome']], $received->outcomes);
            self::assertSame([['job' => 'report']], $received->reports);
        }
    }

    public function testAMailboxThatIsClosedGetsNothing(): void
    {
        $heard = $opened = 0;
        $close = $this->broker()->openMailbox('closed', static function () use (&$heard): void {
            ++$heard;
        }, static function () use (&$opened): void {
            ++$opened;
        });
        Eventually::holds(static function () use (&$opened): bool {
            return $opened === 1;
        }, 'it is open');
        $close();
        $close();
        $received = $this->post();
        $this->submit('job');
        $this->broker()->attach($this->queue(), ['job'], 'closed');
        $this->end($this->join('a'), $this->claimOne('a'));

        Eventually::holds(static fn(): bool => $received->outcomes !== [], 'there is a message');
        self::assertSame([0, 1], [$heard, $opened]);
    }

    public function testAMailboxThatIsClosedAtOnceIsNotOpen(): void
    {
        $opened = 0;
        $close = $this->broker()->openMailbox(
            'closed',
            static fn(MailboxMessage $message) => null,
            static function () use (&$opened): void {
                ++$opened;
            },
        );
        $close();
        $this->post();

        self::assertSame(0, $opened);
    }

    public function testTwoMayListenToOneMailbox(): void
    {
        $first = $this->post();
        $second = $this->post();
        $this->submit('job');
        $this->end($this->join('a'), $this->claimOne('a'));

        Eventually::holds(
            static fn(): bool => $first->outcomes !== [] && $second->outcomes !== [],
            'there are messages',
        );
    }

    public function testReportsReachTheMailboxes(): void
    {
        $received = $this->post();
        $other = $this->post('other');
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->broker()->attach($this->queue(), ['job'], 'other');
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->claimNumber, "\0one");
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->claimNumber, 'two');

        foreach ([$received, $other] as $each) {
            Eventually::holds(
                static fn(): bool => $each->reports === [['job' => "\0one"], ['job' => 'two']],
                'the messages are there',
            );
        }
    }

    public function testReportsOfAnotherOwnersJobAreDropped(): void
    {
        $received = $this->post();
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->join('b');
        $this->broker()->report($this->queue(), 'b', 'job', $delivery->claimNumber, 'of another owner');
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->claimNumber + 1, 'of another claim');
        $this->broker()->report($this->queue(), 'a', 'unheard-of', 1, 'of nothing');
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->claimNumber, 'its own');

        Eventually::holds(static fn(): bool => $received->reports !== [], 'there is a message');
        self::assertSame([['job' => 'its own']], $received->reports);
    }
}
