<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Amp\DeferredFuture;
use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Application;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\TidyTestCase;

use function Amp\async;

final class MiddlewareStackTest extends TidyTestCase
{
    use CatchesThrown;

    public function testTheFirstMiddlewareIsTheOutermost(): void
    {
        $stack = new MiddlewareStack(self::trail(...), self::marking('a'), self::marking('b'), self::marking('c'));

        self::assertSame('a<b<c</>c>b>a', self::bodyOf($stack, ''));
    }

    public function testAStackWithoutMiddlewareIsItsHandler(): void
    {
        self::assertSame('/x', self::bodyOf(new MiddlewareStack(self::trail(...)), 'x'));
        self::assertSame('answer', self::bodyOf(new MiddlewareStack(new Handler()), 'x'));
    }

    public function testAHandlerThatIsAnObjectStandsBehindTheMiddleware(): void
    {
        $handler = new Handler();

        self::assertSame('answer>a', self::bodyOf(new MiddlewareStack($handler, self::marking('a')), ''));
        self::assertSame('a<', $handler->got()->getAttribute('trail'));
    }

    public function testAMiddlewareThatAnswersKeepsTheRequestFromWhatIsBehindIt(): void
    {
        $handler = new Handler();
        $answering = self::middleware(static fn(): ResponseInterface => Response::text('no'));

        self::assertSame(
            'no>a',
            self::bodyOf(new MiddlewareStack($handler, self::marking('a'), $answering, self::marking('b')), ''),
        );
        self::assertNull($handler->request);
    }

    public function testAMiddlewareMayHandARequestOnTwice(): void
    {
        $twice = self::middleware(
            static function (ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface {
                $handler->handle($request);

                return $handler->handle($request);
            },
        );

        self::assertSame('c</>c', self::bodyOf(new MiddlewareStack(self::trail(...), $twice, self::marking('c')), ''));
    }

    public function testStacksNest(): void
    {
        $inner = new MiddlewareStack(self::trail(...), self::marking('b'));

        self::assertSame('a<b</>b>a', self::bodyOf(new MiddlewareStack($inner, self::marking('a')), ''));
    }

    public function testRequestsThatSuspendInTheSameStackDoNotMeet(): void
    {
        $gates = [new DeferredFuture(), new DeferredFuture(), new DeferredFuture()];
        $waiting = self::middleware(
            static function (
                ServerRequestInterface $request,
                RequestHandlerInterface $handler,
            ) use ($gates): ResponseInterface {
                $gates[(int) $request->getUri()->getHost()]->getFuture()->await();

                return $handler->handle($request);
            },
        );
        $stack = new MiddlewareStack(self::trail(...), self::marking('a'), $waiting, self::marking('b'));
        $answers = array_map(
            static fn(int $at)
                => async(static fn() => (string) $stack->handle(new ServerRequest('GET', "//{$at}/{$at}"))->getBody()),
            [0, 1, 2],
        );

        $found = [];
        foreach ([2, 0, 1] as $at) {
            $gates[$at]->complete();
            $found[$at] = $answers[$at]->await();
        }

        self::assertSame([2 => 'a<b</2>b>a', 0 => 'a<b</0>b>a', 1 => 'a<b</1>b>a'], $found);
    }

    public function testWhatAHandlerThrowsGoesThrough(): void
    {
        $this->expectExceptionObject(new \DomainException('so'));

        (new MiddlewareStack(
            new Handler(new \DomainException('so')),
            self::marking('a'),
        ))->handle(new ServerRequest('GET', '/'));
    }

    #[TestWith([null, 'null', 'a Psr\Http\Message\ResponseInterface, such as Spindle\Http\Response::text($text)'])]
    #[TestWith(['text', 'string', 'Spindle\Http\Response::text($text) or html($html)'])]
    #[TestWith([[1], 'array', 'Spindle\Http\Response::json($data)'])]
    public function testAHandlerWithoutAResponseIsNamedWithWhatToReturn(
        mixed $result,
        string $type,
        string $instead,
    ): void {
        $handler = static fn(): mixed => $result;
        $place = 'The handler in ' . __FILE__ . ' on line ' . (__LINE__ - 1);
        $request = new ServerRequest('GET', '/');

        foreach ([
            // @phpstan-ignore argument.type (which is the point)
            static fn() => (new MiddlewareStack($handler, self::marking('a')))->handle($request),
            // @phpstan-ignore argument.type (which is the point)
            static fn() => (new Application($handler))->handle($request),
        ] as $call) {
            $error = self::thrown(\TypeError::class, static fn() => $call());
            self::assertSame(
                "{$place} returned {$type} instead of a response; return {$instead}",
                $error->getMessage(),
            );
        }
    }

    private static function trail(ServerRequestInterface $request): ResponseInterface
    {
        $trail = $request->getAttribute('trail', '');
        \assert(\is_string($trail));

        return Response::text("{$trail}{$request->getUri()->getPath()}");
    }

    private static function bodyOf(RequestHandlerInterface $stack, string $path): string
    {
        return (string) $stack->handle(new ServerRequest('GET', "/{$path}"))->getBody();
    }

    /** Adds its name to the request's trail, and to the response. */
    private static function marking(string $name): MiddlewareInterface
    {
        return self::middleware(
            static function (
                ServerRequestInterface $request,
                RequestHandlerInterface $handler,
            ) use ($name): ResponseInterface {
                $trail = $request->getAttribute('trail', '');
                \assert(\is_string($trail));
                $response = $handler->handle($request->withAttribute('trail', "{$trail}{$name}<"));

                return Response::text("{$response->getBody()}>{$name}");
            },
        );
    }

    /** @param \Closure(ServerRequestInterface, RequestHandlerInterface): ResponseInterface $process */
    private static function middleware(\Closure $process): MiddlewareInterface
    {
        return new class ($process) implements MiddlewareInterface {
            /** @param \Closure(ServerRequestInterface, RequestHandlerInterface): ResponseInterface $process */
            public function __construct(private readonly \Closure $process) {}

            public function process(
                ServerRequestInterface $request,
                RequestHandlerInterface $handler,
            ): ResponseInterface {
                return ($this->process)($request, $handler);
            }
        };
    }
}
