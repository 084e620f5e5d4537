<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use PHPUnit\Framework\Attributes\After;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Job;
use Spindle\Remote\MailboxMessage;
use Spindle\Tests\Eventually;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Tests\VirtualTime;

final class MemoryBrokerTest extends BrokerContract
{
    use VirtualTime;

    private ?MemoryEngine $engine = null;

    public function testTheClockIsTheEnginesOwn(): void
    {
        $now = 1e6;
        $this->engine = new MemoryEngine(static function () use (&$now): float {
            return $now;
        });
        $this->submit(new Job('job', 'frame', delay: 3600.0));
        $this->join('a', 7200.0);
        self::assertSame([], $this->claim('a'));
        $now += 3600;

        self::assertSame('job', $this->claimOne('a')->id);
        $this->join('b', 7200.0);
        $now += 3600;
        $this->broker()->renewLease($this->queue(), 'b', 7200.0, false, '{}');
        self::assertSame('job', $this->claimOne('b')->id);
    }

    public function testABrokerThatIsCutOffIsUnavailableAndTheOthersGoOn(): void
    {
        $this->submit('one');
        $cut = $this->connect();
        $messages = 0;
        $losses = [];
        $close = $cut->openMailbox('client', static function (MailboxMessage $message) use (&$messages): void {
            ++$messages;
        }, static function (bool $mayHaveLostMessages) use (&$losses): void {
            $losses[] = $mayHaveLostMessages;
        });
        $received = $this->post();
        $cut->cut();

        self::thrown(BrokerUnavailableException::class, $cut->durability(...));
        self::thrown(BrokerUnavailableException::class, fn() => $cut->statistics($this->queue()));
        $this->end($this->join('a'), $this->claimOne('a'));
        Eventually::holds(static fn(): bool => $received->outcomes !== [], 'the others have their message');
        self::assertSame([0, [false]], [$messages, $losses]);
        $cut->restore();
        Eventually::holds(static function () use (&$losses): bool {
            return $losses === [false, true];
        }, 'its mailbox is open again');
        self::assertSame(1, $cut->statistics($this->queue())['done_total']);
        $close();
    }

    protected function connect(): MemoryBroker
    {
        return new MemoryBroker($this->engine ??= new MemoryEngine());
    }

    #[After]
    protected function forgetTheEngine(): void
    {
        $this->engine = null;
    }
}
