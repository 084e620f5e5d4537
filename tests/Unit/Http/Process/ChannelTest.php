<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use Spindle\Http\Internal\Process\Channel;
use Spindle\Http\Internal\Process\Message;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\MalformedFrameException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\TidyTestCase;

final class ChannelTest extends TidyTestCase
{
    use CatchesThrown;

    private Channel $here;
    private Channel $there;

    protected function setUp(): void
    {
        [$this->here, $this->there] = Channel::pair();
    }

    protected function tearDown(): void
    {
        unset($this->here, $this->there);
    }

    public function testMessagesArriveInOrderBothWays(): void
    {
        self::assertSame([], $this->there->receive());
        $this->here->send(Message::Question, 7, "a\0b");
        $this->here->send(Message::Ping);
        $this->there->send(Message::Pong);

        self::assertSame([[Message::Question, 7, "a\0b"], [Message::Ping, 0, '']], $this->there->receive());
        self::assertSame([[Message::Pong, 0, '']], $this->here->receive());
    }

    public function testBytesThatTheOtherSideDoesNotReadAreKeptWithoutBlocking(): void
    {
        $long = random_bytes(3_000_000);
        $this->here->send(Message::Answer, 1, $long);
        $this->here->send(Message::Ping);
        self::assertFalse($this->here->isSent());

        $received = [];
        while (\count($received) < 2) {
            array_push($received, ...$this->there->receive() ?? self::fail('It is gone'));
            $this->here->flush();
        }
        self::assertTrue($this->here->isSent());
        self::assertSame([[Message::Answer, 1, $long], [Message::Ping, 0, '']], $received);
    }

    public function testTheLastMessagesOfAClosedSideAreReceivedBeforeItsEnd(): void
    {
        $this->here->send(Message::Ending, 0, 'why');
        $this->here->finish();
        $this->here->close();

        self::assertSame([[Message::Ending, 0, 'why']], $this->there->receive());
        self::assertNull($this->there->receive());
        $this->there->send(Message::Ping, 0, str_repeat('x', 1_000_000));
        self::assertTrue($this->there->isSent(), 'nothing waits for one that is gone');
    }

    public function testTheChannelDoesNotBlockAfterFinish(): void
    {
        $this->here->send(Message::Ending, 0, 'why');
        $this->here->finish();

        self::assertFalse(stream_get_meta_data($this->here->stream())['blocked']);
        self::assertSame([], $this->here->receive());
    }

    public function testFinishStopsAtItsTimeoutIfTheOtherSideDoesNotRead(): void
    {
        $this->here->send(Message::Answer, 0, str_repeat('x', 3_000_000));
        $begun = hrtime(true);
        $this->here->finish(0.1);

        self::assertLessThan(1.0, (hrtime(true) - $begun) / 1e9);
        self::assertTrue($this->here->isSent(), 'the rest is dropped');
    }

    public function testAnUnknownMessageIsRefused(): void
    {
        fwrite($this->here->stream(), LauncherProtocol::frame(250, 0, ''));
        self::thrown(\ValueError::class, fn() => $this->there->receive());
        fwrite($this->here->stream(), "something else\n");
        $this->expectException(MalformedFrameException::class);
        $this->there->receive();
    }
}
