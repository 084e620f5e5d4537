<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop\UncaughtThrowable;
use Spindle\Http\BackgroundWork;
use Spindle\Http\Response;
use Spindle\Http\Testing\TestClient;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\Processes;

use function Amp\async;
use function Amp\delay;

final class InMemoryTest extends AppContract
{
    use CatchesThrown;
    use LeavesNothing;

    public function testWhatHandlersThrewIsKept(): void
    {
        $client = new TestClient(self::APP);

        $client->get('/throws');
        $client->get('/refuses');

        self::assertSame(
            ['a secret'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $client->failures()),
        );
    }

    public function testAnEndlessResponseIsReadUntilItsBodyIsClosed(): void
    {
        /** @var \ArrayObject<int, string> $steps */
        $steps = new \ArrayObject();
        $client = new TestClient(static fn(): Response => Response::serverSentEvents((static function () use (
            $steps,
        ): \Generator {
            try {
                for ($number = 1;; ++$number) {
                    yield "event {$number}";
                }
            } finally {
                $steps[] = 'ended';
            }
        })()));
        $response = $client->stream('GET', '/');
        $body = $response->getBody();
        $events = '';
        while (!str_contains($events, "event 3\n")) {
            $events .= $body->read(8192);
        }
        $steps[] = 'read';
        $body->close();
        $steps[] = 'closed';

        self::assertSame('text/event-stream', $response->getHeaderLine('Content-Type'));
        self::assertStringStartsWith(":\n\ndata: event 1\n\ndata: event 2\n\n", $events);
        self::assertSame(['read', 'ended', 'closed'], $steps->getArrayCopy());
        self::assertSame([true, ''], [$body->eof(), $body->read(1)]);
    }

    public function testATestCanWaitForBackgroundWork(): void
    {
        /** @var DeferredFuture<null> $release */
        $release = new DeferredFuture();
        /** @var \ArrayObject<int, int> $ended */
        $ended = new \ArrayObject();
        $client = new TestClient(static function () use ($release, $ended): Response {
            foreach ([1, 2] as $number) {
                BackgroundWork::start(static function () use ($release, $number, $ended): void {
                    $release->getFuture()->await();
                    $ended[] = $number;
                });
            }

            return Response::text('accepted');
        });
        self::assertSame('accepted', (string) $client->get('/')->getBody());
        $cancelled = new DeferredCancellation();
        $cancelled->cancel();
        $wait = async($client->awaitBackgroundWork(...), $cancelled->getCancellation());
        self::thrown(CancelledException::class, $wait->await(...));
        self::assertCount(0, $ended);
        $release->complete();
        $client->awaitBackgroundWork();

        self::assertSame([1, 2], $ended->getArrayCopy());
        $client->awaitBackgroundWork();
    }

    public function testBackgroundWorkCannotWaitForItself(): void
    {
        $client = new TestClient(static function () use (&$client): Response {
            BackgroundWork::start(static fn() => $client?->awaitBackgroundWork());

            return Response::text('accepted');
        });
        $failure = self::thrown(UncaughtThrowable::class, static function () use ($client): void {
            $client->get('/');
            $client->awaitBackgroundWork();
        });

        self::assertInstanceOf(\LogicException::class, $failure->getPrevious());
        $client->awaitBackgroundWork();
    }

    public function testAFailureOfBackgroundWorkEndsTheWait(): void
    {
        /** @var DeferredFuture<null> $release */
        $release = new DeferredFuture();
        $client = new TestClient(static function () use ($release): Response {
            BackgroundWork::start(static function () use ($release): void {
                $release->getFuture()->await();
                throw new \DomainException('no mail server');
            });

            return Response::text('accepted');
        });
        $client->get('/');
        $release->complete();
        $failure = self::thrown(UncaughtThrowable::class, $client->awaitBackgroundWork(...));

        self::assertSame('no mail server', $failure->getPrevious()?->getMessage());
        $client->awaitBackgroundWork();
    }

    public function testOneFiberReadsABodyUntilAnotherOneClosesIt(): void
    {
        $client = new TestClient(static fn(): Response => Response::stream((static function (): \Generator {
            yield 'piece';
            (new DeferredFuture())->getFuture()->await();
        })()));
        $body = $client->stream('GET', '/')->getBody();
        self::assertSame('piece', $body->read(8192));
        $reader = async($body->read(...), 8192);
        $reader->ignore();
        delay(0);
        $second = null;
        try {
            $body->read(8192);
        } catch (\Throwable $second) {
        }
        self::assertSame('Another fiber is reading this response', $second?->getMessage());
        $body->close();

        $this->expectException(\UnexpectedValueException::class);
        $reader->await();
    }

    #[TestWith(['GET', '/', 'text'])]
    #[TestWith(['HEAD', '/', ''])]
    #[TestWith(['GET', '/stream', 'begin end'])]
    public function testAResponseOverAConnectionThatIsKeptEndsWithItsBody(
        string $method,
        string $target,
        string $body,
    ): void {
        $ended = false;
        $pieces = static function () use (&$ended): \Generator {
            yield 'begin ';
            delay(0);
            yield 'end';
            delay(0);
            $ended = true;
        };
        $client = new TestClient(static fn(ServerRequestInterface $request): Response
            => $request->getRequestTarget() === '/stream' ? Response::stream($pieces()) : Response::text('text'));
        $response = $client->request(
            $method,
            $target,
            ['Connection' => 'keep-alive'],
            cancellation: new TimeoutCancellation(10),
        );

        self::assertSame($body, (string) $response->getBody());
        self::assertSame($target === '/stream', $ended);
    }

    public function testAResponseThatIsDroppedDisconnects(): void
    {
        $left = null;
        $client = new TestClient(static function (ServerRequestInterface $request) use (&$left): Response {
            $left = $request->getAttribute(Cancellation::class);

            return Response::stream((static function (): \Generator {
                while (true) {
                    yield 'piece';
                    delay(0.001);
                }
            })());
        });
        $client->stream('GET', '/');

        self::assertInstanceOf(Cancellation::class, $left);
        self::assertTrue($left->isRequested());
    }

    #[TestWith(['head'])]
    #[TestWith(['body'])]
    public function testAWaitForAResponseCanBeCancelled(string $awaited): void
    {
        $deferred = new DeferredCancellation();
        $client = new TestClient(static function () use ($awaited, $deferred): Response {
            $forever = static function () use ($deferred): void {
                $deferred->cancel();
                (new DeferredFuture())->getFuture()->await();
            };
            $awaited === 'head' ? $forever() : null;

            return Response::stream((static function () use ($forever): \Generator {
                yield 'begun';
                $forever();
            })());
        });

        $this->expectException(CancelledException::class);
        $client->get('/', cancellation: $deferred->getCancellation());
    }

    public function testABodyThatIsCutOffIsRefused(): void
    {
        $client = new TestClient(static fn(): Response => Response::stream((static function (): \Generator {
            yield 'begun';
            delay(0);
            throw new \RuntimeException('No more');
        })()));

        $this->expectExceptionObject(new \UnexpectedValueException('The response ended after 5 bytes of its body'));
        $client->get('/');
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramThatAHandlerHasStartedDoesNotInheritTheConnection(): void
    {
        $client = new TestClient(static fn(): Response => Response::text(implode(' ', Processes::inheritedSockets())));
        $before = implode(' ', Processes::inheritedSockets());

        self::assertSame($before, (string) $client->get('/')->getBody());
    }

    protected function ask(string $method, string $target, array $headers = [], string $body = ''): Response
    {
        return (new TestClient(self::APP))->request($method, $target, $headers, $body);
    }
}
