<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote\Contract;

use Spindle\Remote\Delivery;
use Spindle\Remote\LeaseLostException;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\Conformance\Remote\BrokerContract;
use Spindle\Tests\Eventually;

/**
 * Jobs whose outcome is a sequence.
 *
 * @phpstan-require-extends BrokerContract
 */
trait CarriesItems
{
    public function testItemsAreTakenInTheirOrderByteForByte(): void
    {
        $this->streamed();
        $items = ["\0", '', random_bytes(100_000), "\xff\r\n"];
        self::assertSame(3, $this->put(0, ...\array_slice($items, 0, 3)));
        self::assertSame(4, $this->put(3, $items[3]));

        self::assertTrue($items === $this->broker()->takeItems($this->queue(), 'job', 0, 10));
    }

    public function testItemsAreTakenAFewAtATime(): void
    {
        $this->streamed();
        $this->put(0, 'a', 'b', 'c', 'd');

        self::assertSame(['a', 'b'], $this->broker()->takeItems($this->queue(), 'job', 0, 2));
        self::assertSame(['c', 'd'], $this->broker()->takeItems($this->queue(), 'job', 2, 2));
        self::assertSame([], $this->broker()->takeItems($this->queue(), 'job', 4, 2));
    }

    public function testLargeItemsAreNotTakenAllAtOnce(): void
    {
        $this->streamed();
        $items = array_map(static fn(string $byte): string => str_repeat($byte, 3 << 20), ['a', 'b', 'c', 'd', 'e']);
        $this->put(0, ...$items);
        $taken = [];
        do {
            $answer = $this->broker()->takeItems($this->queue(), 'job', \count($taken), 32);
            self::assertLessThanOrEqual(2, \count($answer), 'no item follows after 4 MiB');
            $taken = [...$taken, ...$answer];
        } while ($answer !== []);

        self::assertTrue($items === $taken);
    }

    public function testItemsThatWereAskedForCanBeAskedForAgainUntilTheNextAreAskedFor(): void
    {
        $this->streamed();
        $this->put(0, 'a', 'b', 'c');
        foreach ([1, 2] as $time) {
            self::assertSame(['a', 'b'], $this->broker()->takeItems($this->queue(), 'job', 0, 2));
        }
        self::assertSame(['c'], $this->broker()->takeItems($this->queue(), 'job', 2, 2));

        self::assertSame(['c'], $this->broker()->takeItems($this->queue(), 'job', 0, 2));
    }

    public function testUntakenItemsAreCounted(): void
    {
        $this->streamed();
        self::assertSame(0, $this->put(0));
        self::assertSame(3, $this->put(0, 'a', 'b', 'c'));
        $this->broker()->takeItems($this->queue(), 'job', 0, 10);
        self::assertSame(3, $this->put(3));
        $this->broker()->takeItems($this->queue(), 'job', 2, 10);

        self::assertSame(1, $this->put(3));
        self::assertSame(2, $this->put(3, 'd'));
    }

    public function testAnItemThatIsStoredAgainIsStoredOnce(): void
    {
        $this->streamed();
        $this->put(0, 'a', 'b');
        self::assertSame(2, $this->put(0, 'a', 'b'));
        self::assertSame(3, $this->put(1, 'b', 'c'));
        self::assertSame(['a', 'b', 'c'], $this->broker()->takeItems($this->queue(), 'job', 0, 10));
        $this->broker()->takeItems($this->queue(), 'job', 2, 10);
        self::assertSame(1, $this->put(0, 'a', 'b', 'c'));

        self::assertSame(['c'], $this->broker()->takeItems($this->queue(), 'job', 2, 10));
    }

    public function testMailboxesGetMessagesAboutItems(): void
    {
        $received = $this->post();
        $other = $this->post('other');
        $this->streamed();
        $this->put(0);
        Eventually::holds(static fn(): bool => $received->items === ['job'], 'there is a message');
        $this->broker()->attach($this->queue(), ['job'], 'other');
        $this->put(0, 'a');

        Eventually::holds(
            static fn(): bool => $received->items === ['job', 'job'] && $other->items === ['job'],
            'there are messages',
        );
    }

    public function testTheOwnerGetsAMessageWhenItemsAreTaken(): void
    {
        $received = $this->post('a');
        $this->streamed();
        $this->put(0, 'a', 'b');
        $this->broker()->takeItems($this->queue(), 'job', 0, 10);
        $this->broker()->takeItems($this->queue(), 'job', 1, 10);

        Eventually::holds(static fn(): bool => $received->taken !== [], 'there is a message');
        self::assertSame(['job'], $received->taken);
    }

    public function testItemsOfAnotherOwnersJobAreNotStored(): void
    {
        $delivery = $this->streamed();
        $this->join('b');

        $number = $delivery->claimNumber;
        self::assertNull($this->broker()->putItems($this->queue(), 'b', 'job', $number, 0, ['item']));
        self::assertNull($this->broker()->putItems($this->queue(), 'a', 'job', $number + 1, 0, ['item']));
        self::assertNull($this->broker()->putItems($this->queue(), 'a', 'unheard-of', 1, 0, ['item']));
        self::assertSame([], $this->broker()->takeItems($this->queue(), 'job', 0, 10));
        self::assertSame([], $this->broker()->takeItems($this->queue(), 'unheard-of', 0, 10));
    }

    public function testAnOwnerWhoseLeaseHasEndedStoresNothing(): void
    {
        $this->submit('job');
        $delivery = $this->claimOne($this->join('a', self::SHORT));
        Eventually::holds(fn(): bool => $this->statistic('agents') === 0, 'its lease has ended');

        self::thrown(
            LeaseLostException::class,
            fn() => $this->broker()->putItems($this->queue(), 'a', 'job', $delivery->claimNumber, 0, ['item']),
        );
        self::assertSame([], $this->broker()->takeItems($this->queue(), 'job', 0, 10));
    }

    public function testItemsWithoutAReaderAreNotStored(): void
    {
        $this->streamed();
        $this->put(0, 'a');
        $this->broker()->cancel($this->queue(), ['job']);

        self::assertNull($this->put(1, 'b'));
        self::assertNull($this->put(1));
    }

    public function testAnOwnerLearnsThatItsItemsAreNotTakenAndCanSettleTheJob(): void
    {
        $received = $this->post('a');
        $delivery = $this->streamed();
        $this->put(0, 'a');
        $this->broker()->stopTakingItems($this->queue(), 'job');
        $this->broker()->stopTakingItems($this->queue(), 'unheard-of');

        Eventually::holds(static fn(): bool => $received->taken === ['job'], 'there is a message');
        self::assertSame([], $received->cancelled);
        self::assertNull($this->put(1, 'b'));
        $this->end('a', $delivery);
        self::assertSame('outcome', $this->outcome('job'));
    }

    public function testItemsStayWhenTheJobIsDone(): void
    {
        $delivery = $this->streamed();
        $this->put(0, 'a', 'b');
        $this->end('a', $delivery);

        self::assertNull($this->put(2, 'c'));
        self::assertSame(['a', 'b'], $this->broker()->takeItems($this->queue(), 'job', 0, 10));
        self::assertSame(['b'], $this->broker()->takeItems($this->queue(), 'job', 1, 10));
    }

    public function testTheNextClaimHasTheFlagThatItemsAreStored(): void
    {
        $delivery = $this->streamed();
        self::assertFalse($delivery->streamed);
        $this->put(0);
        $this->giveBack('a', $delivery, SettlementKind::Retry);
        $delivery = $this->claimOne('a');
        self::assertFalse($delivery->streamed, 'there may be some, there are none');
        $this->broker()->putItems($this->queue(), 'a', 'job', $delivery->claimNumber, 0, ['item']);
        $this->giveBack('a', $delivery, SettlementKind::Retry);

        self::assertTrue($this->claimOne($this->join('b'))->streamed);
    }

    public function testARetriedDeadLetterBeginsItsItemsAnew(): void
    {
        $delivery = $this->streamed();
        $this->put(0, 'a', 'b');
        $this->end('a', $delivery, SettlementKind::Dead);
        $this->broker()->retryDeadLetters($this->queue(), ['job']);
        self::assertFalse($this->claimOne('a')->streamed);
        self::assertSame(1, $this->put(0, 'A'));

        self::assertSame(['A'], $this->broker()->takeItems($this->queue(), 'job', 0, 10));
    }

    public function testACancelledJobLeavesNoItemsToTheNextJobWithItsId(): void
    {
        $delivery = $this->streamed();
        $this->put(0, 'a', 'b');
        $this->giveBack('a', $delivery, SettlementKind::Retry);
        self::assertSame(['job'], $this->broker()->cancel($this->queue(), ['job']));
        $this->submit('job');

        self::assertSame([], $this->broker()->takeItems($this->queue(), 'job', 0, 10));
    }

    public function testADeletedDeadLetterLeavesNoItemsToTheNextJobWithItsId(): void
    {
        $delivery = $this->streamed();
        $this->put(0, 'a', 'b');
        $this->end('a', $delivery, SettlementKind::Dead);
        self::assertSame(1, $this->broker()->deleteDeadLetters($this->queue(), ['job']));
        $this->broker()->dropOutcomes($this->queue(), ['job']);
        $this->submit('job');

        self::assertSame([], $this->broker()->takeItems($this->queue(), 'job', 0, 10));
    }

    /** Claims "job" for the owner "a". */
    private function streamed(): Delivery
    {
        $this->submit('job');

        return $this->claimOne($this->join('a'));
    }

    private function put(int $first, string ...$frames): ?int
    {
        return $this->broker()->putItems($this->queue(), 'a', 'job', 1, $first, array_values($frames));
    }
}
