<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Http\Internal\Server\ConnectionLimits;
use Spindle\Http\Internal\Server\Phase;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

final class TimedTransportTest extends TidyTestCase
{
    use OnOneConnection;

    private const SECOND = 1_000_000_000;

    public function testADeadlineIsCheckedInTimeEvenIfOthersAreLater(): void
    {
        $this->timed->enterPhase(Phase::Linger, (int) hrtime(true));

        $this->assertPhase(Phase::Linger, 2.0);
        self::assertSame($this->timed->deadline, $this->service->nextDeadlineCheck);
        $this->timed->enterPhase(Phase::Write, (int) hrtime(true));
        $this->assertPhase(Phase::Write, self::WRITE_SECONDS);
        self::assertLessThan($this->timed->deadline, $this->service->nextDeadlineCheck);
    }

    public function testAClosedConnectionEntersNoPhase(): void
    {
        $this->connection->close();
        $this->timed->enterPhase(Phase::Write, (int) hrtime(true));

        self::assertSame([Phase::Head, \PHP_INT_MAX], [$this->timed->phase, $this->timed->deadline]);
        self::assertTrue($this->timed->closeAfterResponse);
    }

    public function testBytesAreSentAtOnceIfTheKernelAcceptsThem(): void
    {
        $this->timed->outgoing = 'response';

        self::assertFalse($this->timed->flushAndWait(), 'the fiber was not suspended');
        self::assertSame('response', $this->received());
        self::assertSame(Phase::Head, $this->timed->phase);
    }

    public function testAWriteWaitsForTheClient(): void
    {
        $this->timed->outgoing = str_repeat('x', self::LARGE_BYTES);
        $sent = Async::run($this->timed->flushAndWait(...));
        delay(0);

        $this->assertPhase(Phase::Write, self::WRITE_SECONDS);
        self::assertFalse($sent->isComplete());
        $received = 0;
        Eventually::holds(function () use ($sent, &$received): bool {
            $received += \strlen($this->received());

            return $sent->isComplete();
        }, 'the client has received the response');
        self::assertTrue($sent->await(), 'the fiber was suspended');
        self::assertSame(self::LARGE_BYTES, $received + \strlen($this->received()));
    }

    public function testTheEndOfTheConnectionWakesAWrite(): void
    {
        $this->fillBuffers();
        $sent = Async::run($this->timed->flushAndWait(...));
        delay(0);
        $this->connection->close();

        self::assertTrue($sent->await());
        self::assertFalse($this->timed->flushAndWait(), 'nothing waits on a closed connection');
    }

    public function testBytesForLaterAreSentTogetherWhenTheFiberSuspends(): void
    {
        $this->timed->outgoing = 'a';
        $this->timed->flushSoon();
        $this->timed->outgoing .= 'b';
        $this->timed->flushSoon();
        self::assertSame('', $this->received());
        delay(0);

        self::assertSame('ab', $this->received());
        $this->timed->outgoing = 'c';
        $this->timed->flushSoon();
        delay(0);
        self::assertSame('c', $this->received());
    }

    public function testUnsentBytesOfAStreamHaveADeadline(): void
    {
        $this->timed->enterStream();
        $this->timed->outgoing = str_repeat('x', self::LARGE_BYTES);
        $this->timed->flush();
        $this->assertPhase(Phase::Write, self::WRITE_SECONDS);

        Eventually::holds(fn(): bool => $this->received() === '' && !$this->timed->transport->sending, 'all is sent');
        self::assertSame(Phase::Stream, $this->timed->phase);
    }

    public function testAClientThatDoesNotReceiveTheRestOfAStreamEndsTheConnection(): void
    {
        $this->timed->enterStream();
        fclose($this->client);
        $this->timed->outgoing = 'rest';
        $this->timed->flush();

        self::assertTrue($this->timed->closed);
    }

    public function testAStreamWaitsForUnsentBytes(): void
    {
        $this->timed->enterStream();
        $this->timed->outgoing = str_repeat('x', self::LARGE_BYTES);
        $this->timed->flush();
        $sent = Async::run($this->timed->flushStream(...));
        delay(0);
        self::assertFalse($sent->isComplete());

        Eventually::holds(fn(): bool => $this->received() === '' && $sent->isComplete(), 'all is sent');
    }

    public function testNothingIsSentOnAClosedConnection(): void
    {
        $this->timed->flushSoon();
        $this->connection->close();
        $this->timed->outgoing = 'late';
        delay(0);

        self::assertSame('', $this->received());
    }

    public function testAClientThatDoesNotReceiveAnyMoreEndsTheConnection(): void
    {
        fclose($this->client);
        $this->timed->outgoing = 'response';

        self::assertTrue($this->timed->flushAndWait(), 'the write has failed');
        self::assertTrue($this->timed->closed);
    }

    public function testAWriteContinuesOnlyIfTheClientHasReceivedBytes(): void
    {
        $this->fillBuffers();
        $sent = Async::run($this->timed->flushAndWait(...));
        delay(0);
        $this->timed->deadline = 0;
        self::assertNotSame('', $this->received());
        $this->timed->checkProgress();
        $this->assertPhase(Phase::Write, self::WRITE_SECONDS);
        self::assertFalse($this->timed->closed);

        $this->timed->checkProgress();
        self::assertTrue($this->timed->closed, 'nothing was received since');
        self::assertTrue($sent->await());
    }

    public function testTheConnectionLingersOnlyAfterAllBytesAreSent(): void
    {
        $this->timed->transport->pause();
        $this->timed->outgoing = str_repeat('x', self::LARGE_BYTES);
        $this->timed->linger();
        $this->assertPhase(Phase::Linger, self::WRITE_SECONDS);
        self::assertTrue($this->timed->closeAfterResponse);
        $received = 0;
        Eventually::holds(function () use (&$received): bool {
            $received += \strlen($this->received());

            return feof($this->client);
        }, 'this side ends');

        self::assertSame(self::LARGE_BYTES, $received);
        self::assertFalse($this->timed->closed, 'the client may still send');
        self::assertFalse($this->timed->transport->paused);
        $this->assertPhase(Phase::Linger, 2.0);
    }

    public function testTheConnectionIsClosedAtOnceIfTheClientHasEnded(): void
    {
        $this->timed->peerEnded = true;
        $this->timed->outgoing = 'last';
        $this->timed->linger();

        self::assertTrue($this->timed->closed);
        self::assertSame('last', $this->received());
    }

    public function testTheServerDiscardsBytesAsLongAsTheClientSendsThem(): void
    {
        $this->timed->linger();
        fwrite($this->client, 'rest of a body');
        $this->timed->continueLinger();
        $this->assertPhase(Phase::Linger, 2.0);
        $this->timed->continueLinger();

        self::assertTrue($this->timed->closed);
    }

    public function testTheServerDiscardsBytesForThirtySeconds(): void
    {
        $this->timed->linger();
        $waits = 0;
        while (!$this->timed->closed) {
            ++$waits;
            $this->assertPhase(Phase::Linger, 2.0);
            fwrite($this->client, 'more');
            $this->timed->continueLinger();
        }

        self::assertSame(15, $waits);
    }

    public function testReceivedBytesAreDiscarded(): void
    {
        fwrite($this->client, str_repeat('x', 100_000));
        $this->timed->discardReceived();

        self::assertSame(100_000, $this->timed->transport->receivedBytes);
        self::assertNull($this->timed->transport->receive(1));
    }

    public function testTheEndOfAWaitForABodyRestoresThePhase(): void
    {
        $exchange = $this->exchange(10);
        $this->timed->enterBody();
        $this->assertPhase(Phase::Body, self::WINDOW_SECONDS);
        $this->timed->leaveBody($exchange, Phase::Handler, 3 * self::SECOND);

        $this->assertPhase(Phase::Handler, 3.0);
    }

    public function testAResponseThatHasStartedHasNoDeadlineAfterAWaitForTheBody(): void
    {
        $exchange = $this->exchange(10);
        foreach ([Phase::Handler, Phase::Write] as $interrupted) {
            $this->timed->enterBody();
            $exchange->responseStarted = true;
            $this->timed->leaveBody($exchange, $interrupted, 3 * self::SECOND);
            self::assertSame(Phase::Stream, $this->timed->phase, $interrupted->name);
        }
    }

    public function testAWriteKeepsItsDeadlineAfterAWaitForTheBody(): void
    {
        $this->fillBuffers();
        $exchange = $this->exchange(10);
        $exchange->responseStarted = true;
        $this->timed->enterBody();
        $this->timed->leaveBody($exchange, Phase::Write, 3 * self::SECOND);

        $this->assertPhase(Phase::Write, 3.0);
    }

    public function testUnsentBytesOfAStreamHaveADeadlineAfterAWaitForTheBody(): void
    {
        $this->timed->enterBody();
        $this->fillBuffers();
        $exchange = $this->exchange(10);
        $exchange->responseStarted = true;
        $this->timed->leaveBody($exchange, Phase::Stream, \PHP_INT_MAX);

        $this->assertPhase(Phase::Write, self::WRITE_SECONDS);
    }

    #[TestWith([Phase::Write])]
    #[TestWith([Phase::Discard])]
    public function testAPhaseThatBeganDuringAWaitForTheBodyContinues(Phase $phase): void
    {
        $this->timed->enterBody();
        $phase === Phase::Discard ? $this->timed->discardBody() : $this->timed->enterPhase($phase, (int) hrtime(true));
        $deadline = $this->timed->deadline;
        $this->timed->leaveBody($this->exchange(10), Phase::Handler, self::SECOND);

        self::assertSame([$phase, $deadline], [$this->timed->phase, $this->timed->deadline]);
    }

    public function testAnAnsweredRequestRestoresNoPhase(): void
    {
        $this->timed->enterBody();
        $exchange = $this->exchange(10);
        $exchange->ended = true;
        $this->timed->leaveBody($exchange, Phase::Handler, self::SECOND);

        self::assertSame(Phase::Body, $this->timed->phase);
    }

    public function testTheDeadlineOfABodyAppliesToAStreamedResponse(): void
    {
        $this->timed->enterStream();
        self::assertSame(Phase::Stream, $this->timed->phase);
        $this->timed->bodyAwaited = true;
        $this->timed->enterStream();
        $this->assertPhase(Phase::Body, self::WINDOW_SECONDS);
        $deadline = $this->timed->deadline;
        $this->timed->enterStream();

        self::assertSame($deadline, $this->timed->deadline, 'the wait is not restarted');
    }

    #[TestWith([Phase::Body])]
    #[TestWith([Phase::Discard])]
    public function testABodyContinuesIfItArrivesAtTheMinimumRate(Phase $phase): void
    {
        $phase === Phase::Body ? $this->timed->enterBody() : $this->timed->discardBody();
        $minBytes = (int) (self::MIN_RATE * self::WINDOW_SECONDS);
        $this->timed->transport->receivedBytes += $minBytes;
        $this->timed->deadline = 0;

        self::assertTrue($this->timed->continueBody());
        $this->assertPhase($phase, self::WINDOW_SECONDS);
        $this->timed->transport->receivedBytes += $minBytes - 1;
        self::assertFalse($this->timed->continueBody(), 'the next window counts from zero');
    }

    public function testAConnectionIsEvictableOnlyIfTheServerWaitsForItsClient(): void
    {
        $now = (int) hrtime(true);
        $waits = [];
        foreach (Phase::cases() as $phase) {
            $this->timed->enterPhase($phase, $now);
            $from = $this->timed->evictableFrom();
            $waits[$phase->name] = $from === null ? null : $from - $now;
        }
        $unfinished = ConnectionLimits::MIN_UNFINISHED_NANOSECONDS;

        self::assertSame([
            'Handshake' => $unfinished,
            'Idle' => ConnectionLimits::MIN_IDLE_NANOSECONDS,
            'Head' => $unfinished,
            'Handler' => null,
            'Body' => null,
            'Discard' => $unfinished,
            'Write' => null,
            'Stream' => null,
            'Linger' => $unfinished,
        ], $waits);
        $this->fillBuffers();
        self::assertNull($this->timed->evictableFrom(), 'bytes are unsent');
    }

    public function testAClientThatReceivesTooLittleIsTooSlowForOthers(): void
    {
        $this->fillBuffers();
        $this->timed->enterPhase(Phase::Write, $now = (int) hrtime(true));

        self::assertFalse($this->timed->isTooSlowWhenFull($now), 'the measurement begins');
        $this->timed->transport->sentBytes += 3 * 20 * self::MIN_RATE;
        self::assertFalse($this->timed->isTooSlowWhenFull($now += 3 * self::SECOND), 'as many bytes as necessary');
        self::assertFalse($this->timed->isTooSlowWhenFull($now + 3 * self::SECOND - 1), 'measured too briefly');
        $this->timed->transport->sentBytes += 3 * 20 * self::MIN_RATE - 1;
        self::assertTrue($this->timed->isTooSlowWhenFull($now + 3 * self::SECOND));
        $this->timed->enterPhase(Phase::Stream, $now);
        self::assertFalse($this->timed->isTooSlowWhenFull($now + 3 * self::SECOND), 'the server does not wait for it');
    }

    public function testOnlyWaitsForABodyCountAgainstItsClient(): void
    {
        $now = (int) hrtime(true);
        $this->timed->enterBody();
        self::assertFalse($this->timed->isTooSlowWhenFull($now), 'the measurement begins');
        $this->timed->leaveBody($this->exchange(10), Phase::Handler, self::SECOND);
        $this->timed->phase = Phase::Body;
        self::assertFalse($this->timed->isTooSlowWhenFull($now + 9 * self::SECOND), 'the server did not wait');
        $this->timed->enterBody();
        self::assertTrue($this->timed->isTooSlowWhenFull($now + 9 * self::SECOND));
    }
}
