<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\Driver\StreamSelectDriver;
use Spindle\Http\Application;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServer;
use Spindle\Http\Internal\Answer\EventStream;
use Spindle\Http\Internal\Form\UploadedFile;
use Spindle\Http\Internal\Server\BodyStream;
use Spindle\Http\Internal\Server\Connection;
use Spindle\Http\Internal\Server\Service;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\Reachable;
use Spindle\Tests\ReadsErrorLog;

use function Amp\delay;

/** Responses to what a handler returns, throws or waits for. */
final class HandlerTest extends HttpServerTestCase
{
    use ReadsErrorLog;

    public function testAHandlerMayBeOneOfPsr15(): void
    {
        $handler = new class implements RequestHandlerInterface {
            public function handle(ServerRequestInterface $request): ResponseInterface
            {
                return Response::text("{$request->getMethod()} by PSR-15");
            }
        };

        foreach ([$handler, new Application($handler), $handler->handle(...)] as $form) {
            $this->serve($form);
            self::assertSame('GET by PSR-15', $this->client()->get('/')->response()->body);
        }
    }

    public function testADumpedRequestShowsNothingOfOtherClients(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            if ($request->getRequestTarget() === '/secret') {
                delay(0.05);
            }

            return Response::text(print_r([$request->withAttribute('user', 'ada'), $request->getBody()], true));
        });
        $other = $this->client()->get('/secret', "Authorization: Basic c2VjcmV0\r\n");
        $body = $this->client()->get('/print', "X-Own: shown\r\n")->response()->body;

        foreach (['GET', '/print', '[X-Own]', 'shown', '[user] => ada'] as $own) {
            self::assertStringContainsString($own, $body);
        }
        self::assertStringNotContainsString('ecret', $body);
        self::assertLessThan(1_000, \strlen($body));
        self::assertSame(200, $other->response()->status);
    }

    public function testNothingThatAHandlerReceivesLeadsToOtherClients(): void
    {
        [$events, $reachable, $dumps] = [null, [], ''];
        $this->serve(static function (ServerRequestInterface $request) use (&$events, &$reachable, &$dumps): Response {
            if ($request->getRequestTarget() === '/events') {
                $left = $request->getAttribute(Cancellation::class);
                self::assertInstanceOf(Cancellation::class, $left);
                $response = Response::serverSentEvents((static function () use ($left): \Generator {
                    yield 'first';
                    delay(30, true, $left);
                    yield 'second';
                })());
                $events = $response->getBody();

                return $response;
            }
            $body = $request->getBody();
            $files = $request->getUploadedFiles();
            $copy = $request->withAttribute('user', 'ada');
            $reachable = Reachable::from([$copy, $body, $files, $request->getAttributes(), $events]);
            $dumps = print_r((array) $request, true) . @var_export($request, true); // the body refers to its request

            return Response::text('done');
        });
        $this->client()->get('/events', "Authorization: secret\r\n")->until('first');
        $form = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\nfile\r\n--b--\r\n";
        $client = $this->client()->request('POST', '/', "Content-Type: multipart/form-data; boundary=b\r\n", $form);

        self::assertSame('done', $client->response()->body);
        self::assertStringContainsString('boundary=b', $dumps);
        self::assertStringNotContainsString('secret', $dumps);
        self::assertArrayHasKey(UploadedFile::class, $reachable);
        self::assertArrayHasKey(BodyStream::class, $reachable);
        self::assertArrayHasKey(EventStream::class, $reachable);
        foreach ([Connection::class, Service::class, HttpServer::class, StreamSelectDriver::class] as $class) {
            self::assertArrayNotHasKey($class, $reachable, $reachable[$class] ?? '');
        }
    }

    public function testAnExceptionOfAHandlerIsLoggedAndNotShown(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => match ($request->getRequestTarget()) {
            '/exception' => throw new \RuntimeException('secret'),
            '/error' => throw new \Error('secret too'),
            default => Response::text('fine'),
        });
        $client = $this->client()->get('/exception')->get('/error')->get('/');

        foreach ([1, 2] as $i) {
            $response = $client->response();
            self::assertSame(
                [500, "Internal Server Error\n", true],
                [$response->status, $response->body, $response->keepsConnection()],
            );
        }
        self::assertSame('fine', $client->response()->body, 'the connection is kept');
        self::assertSame(
            ['secret', 'secret too'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $this->log()->failures()),
        );
        self::assertSame(
            ['GET', '/exception'],
            [$this->log()->all[0]['context']['method'], $this->log()->all[0]['context']['target']],
        );
        self::assertSame([500 => 2, 200 => 1], $this->server()->statistics()->answeredRequests);
    }

    public function testNamesInBracesInAnExceptionAreNotReplacedInTheLog(): void
    {
        $this->serve(static fn(): never => throw new \RuntimeException('no {target}'));
        $this->client()->get('/secret')->response();

        self::assertSame(['The handler of {method} {target} failed: no \x7btarget\x7d'], $this->log()->messages());
    }

    public function testAnExceptionOfAHandlerMayHaveAStatus(): void
    {
        $this->serve(static fn(): never => throw new HttpException(405, 'Only POST', ['Allow' => 'POST']));
        $response = $this->client()->get('/')->response();

        self::assertSame(
            [405, "Only POST\n", 'POST', true],
            [$response->status, $response->body, $response->header('allow'), $response->keepsConnection()],
        );
        self::assertSame([], $this->log()->all);
    }

    public function testAReturnValueThatIsNotAResponseIsAnError(): void
    {
        // @phpstan-ignore argument.type (which is the point)
        $this->serve(static function (ServerRequestInterface $request) {
            return $request->getRequestTarget() === '/' ? 'no response' : null;
        });
        $client = $this->client()->get('/')->get('/null')->get('/');

        self::assertSame(
            [500, 500, 500],
            [$client->response()->status, $client->response()->status, $client->response()->status],
        );
        self::assertContainsOnlyInstancesOf(\TypeError::class, $this->log()->failures());
        self::assertCount(3, $this->log()->failures());
    }

    public function testAResponseThatCanNotBeSentIsAnError(): void
    {
        $this->serve(static fn(): ResponseInterface => new Hostile());
        $client = $this->client()->get('/')->get('/');

        self::assertSame([500, 500], [$client->response()->status, $client->response()->status]);
        self::assertContainsOnlyInstancesOf(\InvalidArgumentException::class, $this->log()->failures());
    }

    public function testAnExceptionOfADestructorEndsTheConnectionAfterTheResponses(): void
    {
        $thrown = [];
        EventLoop::setErrorHandler(static function (\Throwable $failure) use (&$thrown): void {
            $thrown[] = $failure->getMessage();
        });
        try {
            $this->serve(static fn(ServerRequestInterface $request): Response => $request->getMethod() === 'GET'
                ? Response::text('collected')
                : new Response(200, [], new ThrowingDestructor()));
            $client = $this->client()->send(
                "GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            );

            self::assertSame('collected', $client->response()->body);
            self::assertSame(200, $client->response('HEAD')->status);
            self::assertTrue($client->isEnded());
            self::assertSame([ThrowingDestructor::MESSAGE], $thrown);
            $client->close();
            Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection ends');
        } finally {
            EventLoop::setErrorHandler(null);
        }
    }

    public function testALoggerThatFailsHarmsNoRequest(): void
    {
        $logger = new FailingLogger();
        $server = $this->servers[] = new HttpServer(
            static fn(): never => throw new \RuntimeException('oops'),
            null,
            $logger,
        );
        [$this->address] = $server->start('127.0.0.1:0');
        $told = $this->errorLogOf(function (): void {
            $client = $this->client()->get('/')->get('/');
            self::assertSame([500, 500], [$client->response()->status, $client->response()->status]);
        });

        self::assertSame(2, $logger->asked);
        self::assertCount(1, $told);
        self::assertStringContainsString('No space left on device', $told[0]);
    }

    public function testADisconnectCancelsOnlyOperationsWithTheCancellation(): void
    {
        /** @var DeferredFuture<string> $ended */
        $ended = new DeferredFuture();
        $thrown = null;
        $this->serve(static function (ServerRequestInterface $request) use ($ended, &$thrown): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            try {
                delay(1_000, cancellation: $cancellation);
            } catch (CancelledException $thrown) {
                delay(0.05);
                $ended->complete($cancellation->isRequested() ? 'went on' : 'not requested');
            }

            return Response::text('unused');
        });
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler waits');
        $client->close();

        self::assertSame('went on', $ended->getFuture()->await());
        self::assertInstanceOf(CancelledException::class, $thrown);
        self::assertInstanceOf(ClientDisconnectedException::class, $thrown->getPrevious());
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        self::assertSame([], $this->log()->all);
    }

    public function testAHandlerThatEndsByTheCancellationIsNotAnError(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            delay(1_000, cancellation: $cancellation);

            return Response::text('unused');
        });
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler waits');
        $client->close();

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is gone');
        self::assertSame(
            [[], 1, []],
            [
                $this->log()->all,
                $this->server()->statistics()->abandonedRequests,
                $this->server()->statistics()->answeredRequests,
            ],
        );
    }

    public function testNothingIsCancelledWhileTheClientIsConnected(): void
    {
        $requested = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$requested): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            self::assertSame($cancellation, $request->withHeader('X', 'y')->getAttribute(Cancellation::class));
            delay(0.01);
            $requested[] = $cancellation->isRequested();

            return Response::text('answered');
        });
        $client = $this->client()->get('/')->get('/');
        $client->response();
        $client->response();

        self::assertSame([false, false], $requested);
    }

    public function testACancellationFetchedAfterADisconnectIsAlreadyRequested(): void
    {
        $requested = null;
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use (&$requested, $gate): Response {
            $gate->getFuture()->await();
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            $requested = $cancellation->isRequested();

            return Response::text('unused');
        });
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler waits');
        $client->close();
        delay(0.02);
        $gate->complete();

        Eventually::holds(static function () use (&$requested): bool {
            return $requested === true;
        }, 'it is requested');
    }

    public function testTheCancellationIsRequestedAfterTheResponseEvenIfTheRequestIsKept(): void
    {
        $kept = [];
        $this->serve(static function (ServerRequestInterface $request) use (&$kept): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            $kept[] = [$request, $cancellation];

            return Response::stream([$cancellation->isRequested() ? 'too early' : 'not yet']);
        });
        $client = $this->client();

        self::assertSame('not yet', $client->get('/')->response()->body);
        self::assertSame('not yet', $client->request('POST', '/', body: 'x')->response()->body);
        Eventually::holds(static function () use (&$kept): bool {
            return array_map(static fn(array $pair): bool => $pair[1]->isRequested(), $kept) === [true, true];
        }, 'both are requested');
    }

    public function testTheCancellationIsRequestedIfItIsFirstUsedAfterTheResponse(): void
    {
        $kept = null;
        $this->serve(static function (ServerRequestInterface $request) use (&$kept): Response {
            $kept = $request;

            return Response::text('');
        });
        $this->client()->get('/')->response();
        \assert($kept instanceof ServerRequestInterface);
        $cancellation = $kept->getAttribute(Cancellation::class);
        \assert($cancellation instanceof Cancellation);

        self::assertTrue($cancellation->isRequested());
    }

    public function testAHandlerCanWaitForAnotherFiber(): void
    {
        $this->serve(static function (): Response {
            $slow = \Spindle\Tests\Async::run(static function (): string {
                delay(0.05);

                return 'awaited';
            });

            return Response::text($slow->await());
        });

        self::assertSame('awaited', $this->client()->get('/')->response()->body);
    }
}
