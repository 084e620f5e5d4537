<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Amp\Cancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Application;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Server\Checks;
use Spindle\Http\MatchedRoute;
use Spindle\Http\Response;
use Spindle\Statistics;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;

use function Amp\delay;

/** The counters of a server. */
final class StatisticsTest extends HttpServerTestCase
{
    public function testTheServerCountsItsEvents(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $before = microtime(true);
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $route = $request->getAttribute(MatchedRoute::class);
            \assert($route instanceof MatchedRoute);
            $route->setName('/{page}');
            $request->getRequestTarget() === '/wait' ? $gate->getFuture()->await() : null;

            return Response::text('', $request->getRequestTarget() === '/broken' ? 502 : 200);
        }, new HttpServerOptions(maxConnectionsPerAddress: 3));
        $client = $this->client()->get('/')->get('/broken')->get('/');
        array_map(static fn() => $client->response(), [1, 2, 3]);
        $bad = $this->client()->send("no request\r\n\r\n");
        $bad->response();
        $waiting = $this->client()->get('/wait');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'one waits');
        self::assertTrue($this->client()->isEnded(), 'one connection too many');

        $statistics = $this->server()->statistics();
        self::assertSame(
            [getmypid(), false, 1, 4, 1, [200 => 2, 502 => 1], [400 => 1], 0, 0],
            [
                $statistics->pid,
                $statistics->stopping,
                $statistics->inFlight,
                $statistics->acceptedConnections + $statistics->rejectedConnections,
                $statistics->rejectedConnections,
                $statistics->answeredRequests,
                $statistics->refusedRequests,
                $statistics->abandonedRequests,
                $statistics->failedHandshakes,
            ],
        );
        self::assertEqualsWithDelta($before, $statistics->startedAt, 5);
        self::assertCount(\count(HttpServerStatistics::DURATION_BOUNDS) + 1, $statistics->durationCounts);
        self::assertSame(3, array_sum($statistics->durationCounts));
        self::assertSame(['/{page}'], array_keys($statistics->routes));
        [$count, $seconds, $failed] = $statistics->routes['/{page}'];
        self::assertSame([3, 1], [$count, $failed]);
        self::assertGreaterThan(0.0, $seconds);
        self::assertGreaterThan(0, $statistics->memory);

        $gate->complete();
        $waiting->response();
        self::assertSame(
            [0, [200 => 3, 502 => 1]],
            [$this->server()->statistics()->inFlight, $this->server()->statistics()->answeredRequests],
        );
    }

    #[TestWith(['stream'])]
    #[TestWith(['events'])]
    public function testAResponseThatFailsMidwayIsCountedOnceAndAsAnError(string $kind): void
    {
        $this->serve(static function (ServerRequestInterface $request) use ($kind): Response {
            $route = $request->getAttribute(MatchedRoute::class);
            \assert($route instanceof MatchedRoute);
            $route->setName('/report');
            $pieces = (static function (): \Generator {
                yield 'begun';
                delay(0.01);
                throw new \RuntimeException('No more');
            })();

            return $kind === 'stream' ? Response::stream($pieces) : Response::serverSentEvents($pieces);
        });
        $client = $this->client()->get('/');
        $client->until('begun');
        $client->rest();

        $statistics = $this->server()->statistics();
        [$count, , $failed] = $statistics->routes['/report'];
        self::assertSame(
            [[200 => 1], 1, 1, 1],
            [$statistics->answeredRequests, $statistics->cutOffResponses, $count, $failed],
        );
    }

    public function testAResponseThatTheClientEndsIsNoError(): void
    {
        $ended = false;
        $this->serve(static function (ServerRequestInterface $request) use (&$ended): Response {
            $left = $request->getAttribute(Cancellation::class);
            \assert($left instanceof Cancellation);

            return Response::stream((static function () use ($left, &$ended): \Generator {
                try {
                    yield 'begun';
                    delay(60, cancellation: $left);
                } finally {
                    $ended = true;
                }
            })());
        });
        $client = $this->client()->get('/');
        $client->until('begun');
        $client->end();
        Eventually::holds(static function () use (&$ended): bool {
            return $ended;
        }, 'the generator has ended');
        $client->rest();

        self::assertSame(0, $this->server()->statistics()->cutOffResponses);
    }

    public function testARequestThatTimesOutDuringItsResponseIsCountedOnce(): void
    {
        $late = false;
        $pieces = static function () use (&$late): \Generator {
            delay(0.3);
            $late = true;
            yield 'late';
        };
        $this->serve(static fn(): Response => Response::stream($pieces()), new HttpServerOptions(handlerTimeout: 0.1));
        $client = $this->client()->send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
        );

        self::assertSame(503, $client->response()->status);
        Eventually::holds(function () use (&$late): bool {
            return $late && $this->server()->statistics()->inFlight === 0;
        }, 'the late answer has ended');
        self::assertSame([503 => 1], $this->server()->statistics()->answeredRequests);
    }

    public function testOpenConnectionsAreCounted(): void
    {
        $this->serve(static fn(): Response => Response::text(''));
        $clients = [$this->client(), $this->client(), $this->client()];
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 3, 'three are open');
        $clients[0]->close();
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 2, 'two are open');
        self::assertSame(3, $this->server()->statistics()->acceptedConnections);
    }

    public function testResponsesThatAreBeingSentAreCounted(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(static fn(ServerRequestInterface $request): Response => match ($request->getRequestTarget()) {
            '/stream' => Response::stream((static function () use ($gate): \Generator {
                yield 'begin ';
                $gate->getFuture()->await();
                yield 'end';
            })()),
            '/large' => Response::text(str_repeat('x', 20_000_000)),
            default => Response::text(''),
        });
        self::assertSame(200, $this->client()->get('/')->response()->status);
        self::assertSame(0, $this->server()->statistics()->sendingResponses);
        $stream = $this->client()->get('/stream');
        $large = $this->client()->get('/large');
        Eventually::holds(fn(): bool => $this->server()->statistics()->sendingResponses === 2, 'two are being sent');
        self::assertSame(0, $this->server()->statistics()->inFlight);

        $gate->complete();
        self::assertSame('begin end', $stream->response()->body);
        self::assertSame(20_000_000, \strlen($large->response()->body));
        Eventually::holds(fn(): bool => $this->server()->statistics()->sendingResponses === 0, 'both are sent');
    }

    public function testTheDurationOfAResponseIsThatOfItsHandler(): void
    {
        $this->serve(static function (): Response {
            delay(0.12);

            return Response::text('');
        });
        $this->client()->get('/')->response();
        $statistics = $this->server()->statistics();

        self::assertGreaterThan(0.11, $statistics->totalDuration);
        self::assertSame(0, array_sum(\array_slice($statistics->durationCounts, 0, 6)), 'none in 0.1 s or less');
        self::assertSame(1, array_sum($statistics->durationCounts));
    }

    public function testPoolsHaveStatistics(): void
    {
        $pool = new class implements Statistics {
            public function statistics(): array
            {
                return ['idle' => 3];
            }
        };
        $this->serve(new Application(static fn(): Response => Response::text(''), statistics: ['db' => $pool]));

        self::assertSame(['db' => ['idle' => 3]], $this->server()->statistics()->pools);
    }

    public function testAStatisticThatIsNotANumberIsOmittedAndReportedOnce(): void
    {
        $pool = new class implements Statistics {
            public function statistics(): array
            {
                // @phpstan-ignore return.type (which is the point)
                return ['idle' => 3, 'name' => 'abc', 'share' => \NAN, 'age_seconds' => 0.5, 'none' => null];
            }
        };
        $this->serve(new Application(static fn(): Response => Response::text(''), statistics: ['db' => $pool]));
        foreach ([1, 2] as $_) {
            self::assertSame(['db' => ['idle' => 3, 'age_seconds' => 0.5]], $this->server()->statistics()->pools);
        }

        self::assertCount(3, $this->log()->messages());
        self::assertMatchesRegularExpression(
            '/^The value name of .+ is not a finite number, and is left out$/s',
            $this->log()->messages()[0],
        );
    }

    public function testABlockedLoopIsNoticed(): void
    {
        $this->serve(static function (): Response {
            usleep(700_000);

            return Response::text('');
        });
        $client = $this->client()->get('/');
        $client->response();

        Eventually::holds(fn(): bool => $this->server()->statistics()->maxLag > 0.1, 'it was late');
    }

    public function testChecksRunConcurrentlyWithADeadline(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $this->serve(new Application(static fn(): Response => Response::text(''), checks: [
            'fine' => static function (): void {},
            'broken' => static fn(): never => throw new \RuntimeException('No route to host'),
            'late' => static fn() => $gate->getFuture()->await(),
            'later' => static fn() => $gate->getFuture()->await(),
        ]));
        $begin = microtime(true);

        self::assertSame(
            ['fine' => null, 'broken' => 'No route to host', 'late' => Checks::LATE, 'later' => Checks::LATE],
            $this->server()->runHealthChecks(),
        );
        self::assertLessThan(1.9, microtime(true) - $begin);
        $gate->complete(); // ends the late check
        delay(0);
    }
}
