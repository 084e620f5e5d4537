<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Letter;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * Letters that arrive in mailboxes without a request.
 *
 * @phpstan-require-extends BrokerContract
 */
trait SendsLetters
{
    public function testAnOutcomeComesToTheMailboxOfItsJob(): void
    {
        $post = $this->post();
        $other = $this->post('other');
        $this->submit('one', 'two', 'three', 'four');
        [$one, $two, $three, $four] = $this->claim($this->join('a'));
        $this->giveBack('a', $four, SettlementKind::Retry, 0, 1);
        $this->end('a', $one, SettlementKind::Done, "\0done\xff");
        $this->end('a', $two, SettlementKind::Dead, '');
        $this->end('a', $three, SettlementKind::Cancelled, 'cancelled');

        Eventually::holds(static fn(): bool => \count($post->outcomes) === 3, 'the letters are there');
        self::assertSame([['one' => "\0done\xff"], ['two' => ''], ['three' => 'cancelled']], $post->outcomes);
        self::assertSame([], $other->outcomes);
    }

    public function testOutcomesAtOnceAllCome(): void
    {
        $post = $this->post();
        $this->submit(...array_map(static fn(int $i): string => "job-{$i}", range(1, 500)));
        $settlements = $expected = [];
        foreach ($this->claim($this->join('a'), 500) as $delivery) {
            $settlements[] = new Settlement(
                $delivery->id,
                $delivery->number,
                SettlementKind::Done,
                frame: "of {$delivery->id}",
            );
            $expected[] = [$delivery->id => "of {$delivery->id}"];
        }
        $this->settle('a', ...$settlements);

        Eventually::holds(static fn(): bool => \count($post->outcomes) >= 500, 'the letters are there');
        self::assertSame($expected, $post->outcomes);
    }

    public function testAnOutcomeComesAfterTheJobWasTriedAgain(): void
    {
        $post = $this->post();
        $this->submit('job');
        $this->giveBack($this->join('a'), $this->claimOne('a'), SettlementKind::Retry, 0, 1, self::SHORT);
        $this->end('a', $this->claimSoon('a'));

        Eventually::holds(static fn(): bool => $post->outcomes === [['job' => 'outcome']], 'there is a letter');
    }

    public function testAnOutcomeComesAfterAnOwnerWasLost(): void
    {
        $post = $this->post();
        $this->submit('job');
        $this->claimOne($this->join('a', self::SHORT));
        $this->end('b', $this->claimSoon($this->join('b')));

        Eventually::holds(static fn(): bool => $post->outcomes === [['job' => 'outcome']], 'there is a letter');
    }

    public function testALargeOutcomeIsToBeLookedFor(): void
    {
        $post = $this->post();
        $large = random_bytes(1 << 20);
        $inline = random_bytes(65536);
        $this->submit('large', 'inline');
        [$first, $second] = $this->claim($this->join('a'));
        $this->end('a', $first, SettlementKind::Done, $large);
        $this->end('a', $second, SettlementKind::Done, $inline);

        Eventually::holds(static fn(): bool => \count($post->outcomes) === 2, 'the letters are there');
        self::assertTrue($post->outcomes === [['large' => ''], ['inline' => $inline]]);
        self::assertTrue($this->outcome('large') === $large);
    }

    public function testLookingTellsOfEachJobWhatThereIs(): void
    {
        $this->submit('waits', 'done');
        $done = $this->claim($this->join('a'))[1];
        $this->end('a', $done);
        $states = $this->broker()->look($this->queue(), ['done', 'unheard-of', 'waits'], 'client');

        self::assertSame(['done', 'unheard-of', 'waits'], array_keys($states));
        self::assertSame(
            [true, false, true],
            [$states['done']->known, $states['unheard-of']->known, $states['waits']->known],
        );
        self::assertSame(
            ['outcome', null, null],
            [$states['done']->outcome, $states['unheard-of']->outcome, $states['waits']->outcome],
        );
        self::assertSame([], $this->broker()->look($this->queue(), [], 'client'));
    }

    public function testOutcomesForWhichAnAnswerHasNoRoomAreAskedForByThemselves(): void
    {
        $this->submit('one', 'two', 'three');
        $outcome = str_repeat('x', 3 << 20);
        foreach ($this->claim($this->join('a')) as $delivery) {
            $this->end('a', $delivery, frame: $outcome);
        }
        $ids = ['one', 'two', 'three'];
        foreach ($this->broker()->look($this->queue(), $ids, 'client') as $id => $state) {
            self::assertSame([true, true], [$state->known, $state->over]);
            self::assertContains($state->outcome, [null, $outcome]);
            self::assertTrue($this->outcome($id) === $outcome);
        }
    }

    public function testWhoLooksForAJobGetsItsOutcomeAsWell(): void
    {
        $client = $this->post();
        $second = $this->post('second');
        $third = $this->post('third');
        $this->submit('waits', 'runs');
        $this->broker()->look($this->queue(), ['waits', 'runs'], 'second');
        [$waits, $runs] = $this->claim($this->join('a'));
        $this->broker()->look($this->queue(), ['runs', 'waits'], 'third');
        $this->end('a', $waits);
        $this->end('a', $runs);

        foreach ([$client, $second, $third] as $post) {
            Eventually::holds(
                static fn(): bool => $post->outcomes === [['waits' => 'outcome'], ['runs' => 'outcome']],
                'the letters are there',
            );
        }
    }

    public function testWhoLooksTwiceIsToldOnce(): void
    {
        $client = $this->post();
        $other = $this->post('other');
        $this->submit('job', 'last');
        foreach ([1, 2] as $time) {
            $this->broker()->look($this->queue(), ['job'], 'other');
            $this->broker()->look($this->queue(), ['job'], 'client');
        }
        [$job, $last] = $this->claim($this->join('a'));
        $this->broker()->report($this->queue(), 'a', 'job', 1, 'report');
        Eventually::holds(
            static fn(): bool => $client->reports !== [] && $other->reports !== [],
            'the reports are there',
        );
        $this->end('a', $job);
        $this->broker()->look($this->queue(), ['last'], 'other');
        $this->end('a', $last);

        foreach ([$client, $other] as $post) {
            Eventually::holds(
                static fn(): bool => \in_array(['last' => 'outcome'], $post->outcomes, true),
                'the last letter is there',
            );
            self::assertSame([['job' => 'outcome'], ['last' => 'outcome']], $post->outcomes);
            self::assertSame([['job' => 'report']], $post->reports);
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
        $post = $this->post();
        $this->submit('job');
        $this->broker()->look($this->queue(), ['job'], 'closed');
        $this->end($this->join('a'), $this->claimOne('a'));

        Eventually::holds(static fn(): bool => $post->outcomes !== [], 'there is a letter');
        self::assertSame([0, 1], [$heard, $opened]);
    }

    public function testAMailboxThatIsClosedAtOnceIsNotOpen(): void
    {
        $opened = 0;
        $close = $this->broker()->openMailbox(
            'closed',
            static fn(Letter $letter) => null,
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
            'there are letters',
        );
    }

    public function testWhatATaskTellsComesToTheMailboxes(): void
    {
        $post = $this->post();
        $other = $this->post('other');
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->broker()->look($this->queue(), ['job'], 'other');
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->number, "\0one");
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->number, 'two');

        foreach ([$post, $other] as $each) {
            Eventually::holds(
                static fn(): bool => $each->reports === [['job' => "\0one"], ['job' => 'two']],
                'the letters are there',
            );
        }
    }

    public function testNobodyTellsOfAJobThatIsNotItsOwn(): void
    {
        $post = $this->post();
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a'));
        $this->join('b');
        $this->broker()->report($this->queue(), 'b', 'job', $delivery->number, 'of another owner');
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->number + 1, 'of another claim');
        $this->broker()->report($this->queue(), 'a', 'unheard-of', 1, 'of nothing');
        $this->broker()->report($this->queue(), 'a', 'job', $delivery->number, 'its own');

        Eventually::holds(static fn(): bool => $post->reports !== [], 'there is a letter');
        self::assertSame([['job' => 'its own']], $post->reports);
    }
}
