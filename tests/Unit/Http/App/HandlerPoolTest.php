<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\App;

use Amp\DeferredFuture;
use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\ServerRequest;
use Psr\Container\ContainerInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Slim\App;
use Slim\Factory\AppFactory;
use Slim\Routing\RouteContext;
use Spindle\Http\HandlerPool;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\Future\await;

final class HandlerPoolTest extends TidyTestCase
{
    use CatchesThrown;

    private int $created = 0;

    public function testConcurrentRequestsOfOneSlimRouteKeepTheirArguments(): void
    {
        $gates = ['ada' => new DeferredFuture(), 'eve' => new DeferredFuture()];
        $pool = new HandlerPool(static fn(): App => self::slim($gates));

        $ada = async(self::bodyOf(...), $pool, '/account/ada');
        $eve = async(static function () use ($pool, $gates): string {
            $gates['eve']->complete();

            return self::bodyOf($pool, '/account/eve');
        });
        $bodyOfEve = $eve->await();
        $gates['ada']->complete();

        self::assertSame(['ada ada', 'eve eve'], [$ada->await(), $bodyOfEve]);
    }

    public function testTheFirstHandlerIsCreatedAtOnceAndReused(): void
    {
        $pool = $this->pool(static fn(int $number): string => "handler {$number}");

        self::assertSame(1, $this->created);
        self::assertSame('handler 1', self::bodyOf($pool));
        self::assertSame('handler 1', self::bodyOf($pool));
    }

    public function testThePoolHasAsManyHandlersAsRequestsAtATimeAndReusesTheLastReleased(): void
    {
        $gates = [1 => new DeferredFuture(), new DeferredFuture(), new DeferredFuture()];
        $pool = $this->pool(static function (int $number) use ($gates): string {
            $gates[$number]->getFuture()->await();

            return (string) $number;
        });
        $requests = array_map(static fn() => async(self::bodyOf(...), $pool), $gates);
        foreach ([3, 1, 2] as $number) {
            $gates[$number]->complete();
            self::assertSame((string) $number, $requests[$number]->await());
        }

        self::assertSame('2', self::bodyOf($pool));
        self::assertSame(3, $this->created);
    }

    public function testAHandlerThatCallsItsPoolGetsAnotherHandler(): void
    {
        $pool = null;
        $pool = $this->pool(static function (int $number) use (&$pool): string {
            self::assertInstanceOf(HandlerPool::class, $pool);

            return $number === 1 ? '1, ' . self::bodyOf($pool) : (string) $number;
        });

        self::assertSame('1, 2', self::bodyOf($pool));
    }

    public function testAHandlerThatThrowsIsReleased(): void
    {
        $pool = $this->pool(static fn(): string => throw new \DomainException('so'));
        foreach ([1, 2] as $_) {
            self::thrown(\DomainException::class, static fn() => self::bodyOf($pool));
        }

        self::assertSame(1, $this->created);
    }

    public function testRequestsThatWaitForNewHandlersDoNotShareOne(): void
    {
        $ready = new DeferredFuture();
        $gate = new DeferredFuture();
        $pool = new HandlerPool(function () use ($ready, $gate): RequestHandlerInterface {
            $number = ++$this->created;
            if ($number > 1) {
                $ready->getFuture()->await();
            }

            return self::handler(static function () use ($gate, $number): string {
                $gate->getFuture()->await();

                return (string) $number;
            });
        });
        $requests = array_map(static fn() => async(self::bodyOf(...), $pool), [1, 2, 3]);
        $ready->complete();
        $gate->complete();

        self::assertSame(['1', '2', '3'], await($requests));
    }

    public function testAFailureToCreateAHandlerEndsOnlyItsOwnRequest(): void
    {
        /** @var DeferredFuture<string> $gate */
        $gate = new DeferredFuture();
        $pool = new HandlerPool(fn(): RequestHandlerInterface => ++$this->created === 2
            ? throw new \DomainException('so')
            : self::handler(static fn(): string => $gate->getFuture()->await()));
        $requests = array_map(static fn() => async(self::bodyOf(...), $pool), [1, 2, 3]);
        foreach ($requests as $request) {
            $request->ignore();
        }
        $gate->complete('done');

        self::assertSame(['done', 'done'], [$requests[0]->await(), $requests[2]->await()]);
        $this->expectExceptionObject(new \DomainException('so'));
        $requests[1]->await();
    }

    public function testAClosureThatReturnsTheSameHandlerTwiceIsRefused(): void
    {
        /** @var DeferredFuture<string> $gate */
        $gate = new DeferredFuture();
        $handler = self::handler(static fn(): string => $gate->getFuture()->await());
        $pool = new HandlerPool(static fn(): RequestHandlerInterface => $handler);
        $first = async(self::bodyOf(...), $pool);
        $second = async(self::bodyOf(...), $pool);
        $second->ignore();
        $gate->complete('done');

        self::assertSame('done', $first->await());
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('The closure of the HandlerPool returned the same handler twice');
        $second->await();
    }

    /** @param \Closure(int): string $handle gets the number of the handler */
    private function pool(\Closure $handle): HandlerPool
    {
        return new HandlerPool(function () use ($handle): RequestHandlerInterface {
            $number = ++$this->created;

            return self::handler(static fn(): string => $handle($number));
        });
    }

    /** @param \Closure(): string $body */
    private static function handler(\Closure $body): RequestHandlerInterface
    {
        return new class ($body) implements RequestHandlerInterface {
            /** @param \Closure(): string $body */
            public function __construct(private readonly \Closure $body) {}

            public function handle(ServerRequestInterface $request): ResponseInterface
            {
                return Response::text(($this->body)());
            }
        };
    }

    /**
     * @param array<string, DeferredFuture<mixed>> $gates what the route's middleware waits for, by id
     *
     * @return App<ContainerInterface|null>
     */
    private static function slim(array $gates): App
    {
        $app = AppFactory::create(new Psr17Factory());
        $app->get('/account/{id}', static function (
            ServerRequestInterface $request,
            ResponseInterface $response,
            array $arguments,
        ): ResponseInterface {
            self::assertIsString($arguments['id']);
            $id = RouteContext::fromRequest($request)->getRoute()?->getArgument('id');
            $response->getBody()->write("{$arguments['id']} {$id}");

            return $response;
        })->add(static function (
            ServerRequestInterface $request,
            RequestHandlerInterface $handler,
        ) use ($gates): ResponseInterface {
            $gates[basename($request->getUri()->getPath())]->getFuture()->await();

            return $handler->handle($request);
        });

        return $app;
    }

    private static function bodyOf(RequestHandlerInterface $handler, string $path = '/'): string
    {
        return (string) $handler->handle(new ServerRequest('GET', $path))->getBody();
    }
}
