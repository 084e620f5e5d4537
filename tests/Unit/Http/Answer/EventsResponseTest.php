<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Answer;

use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\DataProvider;
use Revolt\EventLoop;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\Internal\Answer\EventStream;
use Spindle\Http\Response;
use Spindle\Http\ServerSentEvent;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\VirtualTime;

use function Amp\async;
use function Amp\delay;

/** Tests {@see Response::serverSentEvents()}. */
final class EventsResponseTest extends TidyTestCase
{
    use CatchesThrown;
    use VirtualTime;

    private const COMMENT = ":\n\n";
    private const SHORT = 0.002;

    /** @var list<string> */
    private array $log = [];

    public function testTheResponseIsAnEventStreamThatProxiesDoNotBuffer(): void
    {
        $response = Response::serverSentEvents([]);

        self::assertSame(200, $response->getStatusCode());
        self::assertSame(
            ['Content-Type' => ['text/event-stream'], 'Cache-Control' => ['no-store'], 'X-Accel-Buffering' => ['no']],
            $response->getHeaders(),
        );
        self::assertNull($response->getBody()->getSize());
    }

    public function testGivenHeadersReplaceItsOwn(): void
    {
        $response = Response::serverSentEvents([], ['cache-control' => 'no-cache', 'X-Own' => 'a']);

        self::assertSame(
            ['no-cache', 'a', 'no'],
            array_map($response->getHeaderLine(...), ['Cache-Control', 'X-Own', 'X-Accel-Buffering']),
        );
    }

    /** @return iterable<string, array{\Closure(): iterable<ServerSentEvent|string>}> */
    public static function iterables(): iterable
    {
        $events = ['text', new ServerSentEvent('more', 'news', '1')];
        yield 'an array' => [static fn() => $events];
        yield 'a generator' => [static fn() => yield from $events];
        yield 'a generator with the same keys again' => [static function () use ($events) {
            foreach ($events as $event) {
                yield 'key' => $event;
            }
        }];
        yield 'an iterator' => [static fn() => new \ArrayIterator($events)];
        yield 'an aggregate' => [static fn() => new \ArrayObject($events)];
    }

    /** @param \Closure(): iterable<ServerSentEvent|string> $events */
    #[DataProvider('iterables')]
    public function testEachReadReturnsOneEvent(\Closure $events): void
    {
        $body = Response::serverSentEvents($events())->getBody();

        self::assertSame(self::COMMENT, $body->read(1000), 'the client hears at once that the stream is open');
        self::assertSame("data: text\n\n", $body->read(1000));
        self::assertFalse($body->eof());
        self::assertSame("event: news\nid: 1\ndata: more\n\n", $body->read(1000));
        self::assertSame(['', true], [$body->read(1000), $body->eof()]);
    }

    public function testAnEventCanBeReadInPieces(): void
    {
        $body = Response::serverSentEvents(['text'])->getBody();
        $read = '';
        while (!$body->eof()) {
            $read .= $body->read(2);
            self::assertSame(\strlen($read), $body->tell());
        }

        self::assertSame(self::COMMENT . "data: text\n\n", $read);
    }

    public function testAnEventIsCreatedOnlyAfterThePreviousOneWasRead(): void
    {
        $body = $this->begun($this->counting(3));
        self::assertSame([], $this->done());

        foreach (['1', '2', '3'] as $n => $data) {
            self::assertSame("data: {$data}\n\n", $body->read(1000));
            delay(self::SHORT); // time for an iterator that would go on
            self::assertCount($n + 1, $this->done());
        }
        $body->close();
    }

    public function testAllEventsAreCreatedInOneFiber(): void
    {
        /** @var \ArrayObject<int, int> $fibers */
        $fibers = new \ArrayObject();
        $body = $this->begun((static function () use ($fibers): \Generator {
            try {
                for (;;) {
                    delay(self::SHORT);
                    yield 'event';
                    $fibers[] = spl_object_id(\Fiber::getCurrent() ?? new \stdClass());
                }
            } finally {
                $fibers[] = spl_object_id(\Fiber::getCurrent() ?? new \stdClass());
            }
        })());
        foreach (range(1, 4) as $_) {
            $body->read(1000);
            delay(self::SHORT);
        }
        $body->close();
        delay(0);

        self::assertCount(4, $fibers);
        self::assertCount(1, array_unique($fibers->getArrayCopy()));
    }

    public function testOtherFibersRunDuringAWaitForAnEvent(): void
    {
        /** @var DeferredFuture<string> $event */
        $event = new DeferredFuture();
        $body = $this->begun((static fn() => yield $event->getFuture()->await())());
        $read = async($body->read(...), 1000);
        delay(0);
        self::assertFalse($read->isComplete());
        $event->complete('at last');

        self::assertSame("data: at last\n\n", $read->await());
    }

    public function testACommentIsSentAfterEachHeartbeatWithoutAnEvent(): void
    {
        /** @var DeferredFuture<string> $event */
        $event = new DeferredFuture();
        $body = $this->begun((static fn() => yield $event->getFuture()->await())(), self::SHORT);

        self::assertSame(
            [self::COMMENT, self::COMMENT, self::COMMENT],
            [$body->read(1000), $body->read(1000), $body->read(1000)],
        );
        $event->complete('at last');
        delay(0);
        self::assertSame("data: at last\n\n", $body->read(1000));
        self::assertSame(['', true], [$body->read(1000), $body->eof()]);
    }

    public function testWithoutAHeartbeatThereIsNoComment(): void
    {
        /** @var DeferredFuture<string> $event */
        $event = new DeferredFuture();
        $body = $this->begun((static fn() => yield $event->getFuture()->await())(), \INF);
        $watchers = EventLoop::getIdentifiers();
        $read = async($body->read(...), 1000);
        delay(0);
        self::assertSame($watchers, EventLoop::getIdentifiers());
        $event->complete('at last');

        self::assertSame("data: at last\n\n", $read->await());
    }

    public function testNoEventIsLostBetweenHeartbeats(): void
    {
        $body = Response::serverSentEvents((static function () {
            for ($n = 1; $n <= 100; ++$n) {
                delay(random_int(0, 2) / 1000);
                yield (string) $n;
            }
        })(), heartbeat: 0.001)->getBody();
        $contents = $body->getContents();

        self::assertGreaterThan(1, substr_count($contents, self::COMMENT));
        self::assertSame(
            implode('', array_map(static fn(int $n): string => "data: {$n}\n\n", range(1, 100))),
            str_replace(self::COMMENT, '', $contents),
        );
    }

    /** @return iterable<string, array{float}> */
    public static function noHeartbeats(): iterable
    {
        yield 'none' => [0.0];
        yield 'backwards' => [-1.0];
        yield 'not a number' => [\NAN];
    }

    #[DataProvider('noHeartbeats')]
    public function testAHeartbeatThatIsNotPositiveIsRefused(float $seconds): void
    {
        $this->expectException(\ValueError::class);
        Response::serverSentEvents([], heartbeat: $seconds);
    }

    public function testAGeneratorThatWasNeverReadIsNotStarted(): void
    {
        $this->begun($this->counting(3))->close();
        delay(0);

        self::assertSame([], $this->done());
    }

    public function testAGeneratorEndsAtItsYieldWhenTheClientDisconnects(): void
    {
        $body = $this->begun($this->counting(3));
        $body->read(1000);
        $body->close();
        Eventually::holds(fn(): bool => \count($this->done()) === 4, 'it has cleaned up, which may take time');

        self::assertSame(['made 1', ClientDisconnectedException::class, 'cleaning up', 'clean'], $this->done());
        self::assertSame(['', true], [$body->read(1000), $body->eof()]);
    }

    public function testASuspendedGeneratorEndsAtItsNextEvent(): void
    {
        /** @var DeferredFuture<string> $event */
        $event = new DeferredFuture();
        $body = $this->begun($this->logging((static fn() => yield $event->getFuture()->await())()));
        $read = async($body->read(...), 1000);
        delay(0);
        $body->close();

        self::assertSame('', $read->await(), 'the reader is resumed');
        self::assertTrue($body->eof());
        self::assertSame([], $this->done());
        $event->complete('too late');
        Eventually::holds(fn(): bool => \count($this->done()) === 4, 'it has cleaned up');
        self::assertSame(['made too late', ClientDisconnectedException::class, 'cleaning up', 'clean'], $this->done());
        self::assertSame(['', true], [$body->read(1000), $body->eof()]);
    }

    public function testAGeneratorThatUsesTheCancellationEndsAtOnce(): void
    {
        $leaving = new DeferredCancellation();
        /** @var DeferredFuture<string> $event */
        $event = new DeferredFuture();
        $body = $this->begun($this->logging(
            (static fn() => yield $event->getFuture()->await($leaving->getCancellation()))(),
        ));
        $read = async($body->read(...), 1000);
        delay(0);
        $body->close();
        $leaving->cancel();

        self::assertSame('', $read->await());
        Eventually::holds(fn(): bool => $this->done() === ['cleaning up', 'clean'], 'it has cleaned up');
    }

    public function testClosingTwiceHasNoFurtherEffect(): void
    {
        $body = $this->begun($this->counting(3));
        $body->read(1000);
        $body->close();
        $body->close();
        Eventually::holds(fn(): bool => \count($this->done()) === 4, 'it has cleaned up');
        $body->close();
        delay(0);

        self::assertCount(4, $this->done());
    }

    public function testAnExceptionOfTheIteratorReachesTheReader(): void
    {
        $body = $this->begun((static function () {
            yield 'first';
            throw new \DomainException('no more');
        })());
        self::assertSame("data: first\n\n", $body->read(1000));
        self::assertFalse($body->eof());

        foreach ([1, 2] as $time) {
            $failure = self::thrown(\DomainException::class, static fn() => $body->read(1000));
            self::assertSame('no more', $failure->getMessage());
            self::assertFalse($body->eof(), "it has not come to its end, and says so {$time} times");
        }
        $body->close();
        self::assertTrue($body->eof());
    }

    public function testAnExceptionOfTheIteratorAfterAHeartbeatReachesTheReader(): void
    {
        /** @var DeferredFuture<string> $event */
        $event = new DeferredFuture();
        $body = $this->begun((static fn() => yield $event->getFuture()->await())(), self::SHORT);
        self::assertSame(self::COMMENT, $body->read(1000));
        $event->error(new \DomainException('no more'));
        delay(0);
        self::assertFalse($body->eof());

        $this->expectException(\DomainException::class);
        $body->read(1000);
    }

    public function testAnInvalidEventFailsAndEndsTheGenerator(): void
    {
        $events = static function () {
            yield 'first';
            yield 2;
        };
        $body = $this->begun($this->logging($events())); // @phpstan-ignore argument.type (that is the point)
        $body->read(1000);

        $failure = self::thrown(\TypeError::class, static fn() => $body->read(1000));
        self::assertSame(['made first', 'made 2', $failure::class, 'cleaning up', 'clean'], $this->done());
        $body->close();
    }

    public function testExceptionsAfterTheClientHasDisconnectedAreDropped(): void
    {
        /** @var DeferredFuture<string> $event */
        $event = new DeferredFuture();
        $bodies = [
            $this->begun((static function () {
                try {
                    yield 'first';
                } finally {
                    throw new \DomainException('of the cleaning');
                }
            })()),
            $this->begun((static function () use ($event) {
                yield 'first';
                yield $event->getFuture()->await();
            })()),
            $this->begun((function () {
                try {
                    while (true) {
                        try {
                            yield 'first';
                        } catch (ClientDisconnectedException) {
                            $this->log[] = 'will not go';
                        }
                    }
                } finally {
                    $this->log[] = 'has to';
                    throw new \DomainException('of the cleaning');
                }
            })()),
        ];
        foreach ($bodies as $body) {
            self::assertSame("data: first\n\n", $body->read(1000));
        }
        $read = async($bodies[1]->read(...), 1000);
        delay(0);
        array_map(static fn(EventStream $body) => $body->close(), $bodies);
        $event->error(new \DomainException('too late'));

        self::assertSame('', $read->await());
        Eventually::holds(fn(): bool => $this->done() === ['will not go', 'has to'], 'one that goes on is destroyed');
        delay(self::SHORT);
        foreach ($bodies as $body) {
            self::assertSame(['', true], [$body->read(1000), $body->eof()]);
        }
    }

    public function testAnIteratorThatIsNotAGeneratorIsReleased(): void
    {
        $events = new \ArrayIterator(['first', 'second']);
        $body = $this->begun($events);
        $body->read(1000);
        $kept = \WeakReference::create($events);
        unset($events);
        self::assertNotNull($kept->get());
        $body->close();
        delay(self::SHORT);

        self::assertNull($kept->get());
    }

    public function testAStreamThatIsNotClosedReleasesItsGenerator(): void
    {
        $events = (static fn() => yield 'first')();
        $body = $this->begun($events);
        $body->read(1000);
        $kept = \WeakReference::create($events);
        unset($events, $body);
        gc_collect_cycles();

        self::assertNull($kept->get());
    }

    /** @return list<string> what the iterators of a test have logged */
    private function done(): array
    {
        return $this->log;
    }

    /**
     * Returns the stream after its first comment.
     *
     * @param iterable<ServerSentEvent|string> $events
     */
    private function begun(iterable $events, float $heartbeat = 15.0): EventStream
    {
        $body = Response::serverSentEvents($events, heartbeat: $heartbeat)->getBody();
        self::assertInstanceOf(EventStream::class, $body);
        self::assertSame(self::COMMENT, $body->read(1000));

        return $body;
    }

    /** @return \Generator<int, string> */
    private function counting(int $last): \Generator
    {
        return $this->logging((static function () use ($last) {
            for ($n = 1; $n <= $last; ++$n) {
                yield (string) $n;
            }
        })());
    }

    /**
     * @param \Generator<int, string> $events
     *
     * @return \Generator<int, string>
     */
    private function logging(\Generator $events): \Generator
    {
        try {
            foreach ($events as $event) {
                $this->log[] = "made {$event}";
                yield $event;
            }
        } catch (ClientDisconnectedException|\TypeError $why) {
            $this->log[] = $why::class;
            throw $why;
        } finally {
            $this->log[] = 'cleaning up';
            delay(0);
            $this->log[] = 'clean';
        }
    }
}
