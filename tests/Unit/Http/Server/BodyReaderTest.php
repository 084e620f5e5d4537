<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Server\Phase;
use Spindle\Http\Internal\Server\ServerExchange;
use Spindle\Internal\CannotWaitException;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

final class BodyReaderTest extends TidyTestCase
{
    use CatchesThrown;
    use OnOneConnection;

    private const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

    public function testAWaitEndsWithTheNextBytes(): void
    {
        $exchange = $this->begin(5);
        $this->timed->enterPhaseUntil(Phase::Handler, (int) hrtime(true) + 9_000_000_000);
        $this->timed->transport->pause();
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);

        self::assertTrue($this->timed->bodyAwaited);
        self::assertFalse($this->timed->transport->paused);
        $this->assertPhase(Phase::Body, self::WINDOW_SECONDS);
        $this->arrive('ab');
        self::assertSame('ab', $bytes->await());
        self::assertFalse($this->timed->bodyAwaited);
        $this->assertPhase(Phase::Handler, 9.0);
        $this->parser->push('cde');
        self::assertSame(['cde', ''], [$this->reader->receive($exchange), $this->reader->receive($exchange)]);
    }

    public function testTheClientIsAskedToContinueOnceAndOnlyIfTheServerWaits(): void
    {
        $exchange = $this->begin(3, true);
        $this->parser->push('a');
        self::assertSame(['a', ''], [$this->reader->receive($exchange), $this->received()]);
        foreach ([self::CONTINUE, ''] as $answer) {
            $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
            delay(0);
            self::assertSame($answer, $this->received());
            $this->arrive('b');
            self::assertSame('b', $bytes->await());
        }
    }

    public function testTheClientIsNotAskedToContinueAfterTheStartOfTheResponse(): void
    {
        $exchange = $this->begin(1, true);
        $exchange->responseStarted = true;
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $this->arrive('a');

        self::assertSame(['a', ''], [$bytes->await(), $this->received()]);
    }

    public function testOnlyOneFiberCanWait(): void
    {
        $exchange = $this->begin(1);
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $second = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $this->arrive('a');

        self::assertSame('a', $bytes->await());
        $this->expectExceptionMessage('Another fiber is reading the body');
        $second->await();
    }

    public function testAFiberThatWaitsUntilTheClientIsAskedDoesNotReplaceAnother(): void
    {
        $exchange = $this->begin(1, true);
        $this->fillBuffers();
        $first = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $second = Async::run(fn(): string => $this->reader->receive($exchange));
        Eventually::holds(function () use ($first): bool {
            $this->received();

            return $first->isComplete();
        }, 'the client is asked to continue');
        $this->arrive('a');

        self::assertSame('a', $second->await());
        $this->expectExceptionMessage('Another fiber is reading the body');
        $first->await();
    }

    public function testARequestCanEndBeforeTheClientIsAsked(): void
    {
        $exchange = $this->begin(1, true);
        $this->fillBuffers();
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $exchange->ended = true;
        Eventually::holds(function () use ($bytes): bool {
            $this->received();

            return $bytes->isComplete();
        }, 'the client is asked to continue');

        $this->expectException(\LogicException::class);
        $bytes->await();
    }

    public function testAWaitThatIsTooSlowFails(): void
    {
        $exchange = $this->begin(1);
        $this->reader->failTooSlow();
        self::assertFalse($this->timed->closeAfterResponse, 'no fiber waits');
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $this->reader->failTooSlow();

        self::assertTrue($this->timed->closeAfterResponse);
        $this->expectExceptionObject(new HttpException(408, 'The body arrived too slowly'));
        $bytes->await();
    }

    public function testAMalformedBodyEndsTheConnectionAfterTheResponse(): void
    {
        $exchange = $this->begin(null);
        $this->parser->push("not a size\r\n");
        $malformed = self::thrown(HttpException::class, fn() => $this->reader->receive($exchange));
        self::assertSame(400, $malformed->status);
        self::assertTrue($this->timed->closeAfterResponse);
    }

    public function testABodyOfAnAnsweredRequestIsNotAvailable(): void
    {
        $exchange = $this->begin(1);
        $this->parser->push('a');
        $exchange->ended = true;

        self::assertNull($this->reader->whole($exchange));
        $this->expectException(\LogicException::class);
        $this->reader->receive($exchange);
    }

    public function testTheEndOfTheRequestEndsTheWait(): void
    {
        $exchange = $this->begin(1);
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $exchange->ended = true;
        $this->reader->wake();

        $this->expectException(\LogicException::class);
        $bytes->await();
    }

    public function testAClientThatHasEndedItsSideSendsNoMore(): void
    {
        $exchange = $this->begin(2, true);
        $this->parser->push('a');
        $this->timed->peerEnded = true;
        self::assertSame('a', $this->reader->receive($exchange));
        self::thrown(ClientDisconnectedException::class, fn() => $this->reader->receive($exchange));
        self::assertSame('', $this->received(), 'the client is not asked to continue');
    }

    public function testAClosedConnectionHasNoBody(): void
    {
        $exchange = $this->begin(1);
        $this->parser->push('a');
        $this->connection->close();

        self::assertNull($this->reader->whole($exchange));
        $this->expectException(ClientDisconnectedException::class);
        $this->reader->receive($exchange);
    }

    public function testAWaitFailsWithTheReasonOfTheCancellation(): void
    {
        $exchange = $this->begin(1);
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $exchange->ended = true;
        $exchange->cancel(ClientDisconnectedException::stopped());
        $this->reader->wake();

        $this->expectExceptionMessage('The server stopped');
        $bytes->await();
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAWaitThatIsNotPossibleKeepsNoOtherFiberOut(): void
    {
        $exchange = $this->begin(1);
        $refusal = Async::inSignalHandler(fn(): string => $this->reader->receive($exchange));
        self::assertInstanceOf(CannotWaitException::class, $refusal);
        self::assertFalse($this->timed->bodyAwaited);
        $bytes = Async::run(fn(): string => $this->reader->receive($exchange));
        delay(0);
        $this->arrive('a');

        self::assertSame('a', $bytes->await());
    }

    public function testABodyIsWholeOnceItHasArrivedAndUntilItIsRead(): void
    {
        $exchange = $this->begin(3);
        $this->parser->push('ab');
        self::assertNull($this->reader->whole($exchange));
        $this->parser->push('c');

        self::assertSame(['abc', null], [$this->reader->whole($exchange), $this->reader->whole($exchange)]);
    }

    public function testABodyThatIsTooLargeIsNotRead(): void
    {
        $exchange = $this->begin(1_001);
        $this->parser->push(str_repeat('x', 1_001));

        self::assertNull($this->reader->whole($exchange));
    }

    public function testOnlyTheCurrentRequestHasTrailers(): void
    {
        $exchange = $this->begin(null);
        $this->parser->push("0\r\nA: b\r\n\r\n");
        self::assertSame(['', "A: b\r\n"], [$this->reader->receive($exchange), $this->reader->trailers($exchange)]);
        $exchange->ended = true;

        self::assertSame('', $this->reader->trailers($exchange));
    }

    /** Begins a request with a body of this length, or in chunks. */
    private function begin(?int $length, bool $expectsContinue = false): ServerExchange
    {
        $this->parser->push(
            "POST / HTTP/1.1\r\nHost: a\r\n"
                . ($length === null ? 'Transfer-Encoding: chunked' : "Content-Length: {$length}")
                . "\r\n\r\n",
        );
        self::assertNotNull($this->parser->readHead());

        return $this->exchange($length, $expectsContinue);
    }

    /** Passes on bytes of the client, as the connection does. */
    private function arrive(string $bytes): void
    {
        $this->parser->push($bytes);
        $this->reader->wake();
    }
}
