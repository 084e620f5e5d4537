<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\MatchedRoute;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;

use function Amp\delay;

/** The log names handlers that hold the event loop for too long. */
final class BlockWarningTest extends HttpServerTestCase
{
    use CatchesThrown;

    private const BY_HANDLER = '~^The handler of \{route\} blocked the event loop for (\d\.\d\d) s\.'
        . ' Other requests had to wait$~D';
    private const BY_OPEN_REQUESTS = '~^The event loop was blocked for (\d\.\d\d) s\{requests\}\.'
        . ' Other requests had to wait$~D';

    protected function setUp(): void
    {
        parent::setUp();
        $this->keepsBlockWarnings = true;
    }

    public function testAHandlerThatBlocksIsNamedByMethodAndPath(): void
    {
        $this->serve(self::handle(...));
        self::assertSame(200, $this->client()->get('/block?0.6')->response()->status);

        $this->assertWarning(self::BY_HANDLER, 0.6, ['route' => 'GET /block']);
    }

    public function testAHandlerIsNamedByItsRoute(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $route = $request->getAttribute(MatchedRoute::class);
            \assert($route instanceof MatchedRoute);
            $route->setName('/block/{number}');

            return self::handle($request);
        });
        self::assertSame(200, $this->client()->get('/block?0.6')->response()->status);

        $this->assertWarning(self::BY_HANDLER, 0.6, ['route' => 'GET /block/{number}']);
    }

    public function testAHandlerThatBlocksAfterAWaitIsNamed(): void
    {
        $this->serve(self::handle(...));
        $client = $this->client();
        foreach (['/block?0', '/wait-and-block?0.7'] as $target) {
            self::assertSame(200, $client->get($target)->response()->status);
        }

        $this->assertWarning(self::BY_HANDLER, 0.7, ['route' => 'GET /wait-and-block']);
    }

    public function testABlockBetweenTwoWaitsNamesOpenRequests(): void
    {
        $this->serve(self::handle(...));
        self::assertSame(200, $this->client()->get('/block-and-wait?0.7')->response()->status);

        $this->assertWarning(
            self::BY_OPEN_REQUESTS,
            0.7,
            ['requests' => ' while these requests were open: GET /block-and-wait?0.7'],
        );
    }

    public function testABodyThatBlocksNamesOpenRequests(): void
    {
        $this->serve(self::handle(...));
        self::assertSame(200, $this->client()->get('/stream?0.7')->response()->status);

        $this->assertWarning(
            self::BY_OPEN_REQUESTS,
            0.7,
            ['requests' => ' while these requests were open: GET /stream?0.7'],
        );
    }

    public function testHandlersThatWaitAreNotNamed(): void
    {
        $this->serve(self::handle(...), new HttpServerOptions(blockWarning: 1.5));
        $client = $this->client();
        self::assertSame(200, $client->get('/wait?2')->response()->status);
        self::assertSame(200, $client->get('/block?0.2')->response()->status, 'less than the limit');

        self::assertSame([], $this->log()->messages());
    }

    public function testIdleTimeBeforeARequestIsNoBlock(): void
    {
        $this->serve(self::handle(...));
        $client = $this->client();
        $times = [];
        for ($i = 0; $i < 3; ++$i) {
            self::assertSame(200, $client->get('/block?0')->response()->status);
            $times[] = hrtime(true);
            Eventually::holds(static fn(): bool => hrtime(true) - $times[$i] > 700_000_000, 'the connection is idle');
        }

        self::assertSame([], $this->log()->messages());
    }

    public function testZeroTurnsTheWarningsOff(): void
    {
        $this->serve(self::handle(...), new HttpServerOptions(blockWarning: 0));
        self::assertSame(200, $this->client()->get('/block?0.6')->response()->status);

        self::assertSame([], $this->log()->messages());
    }

    public function testTheLimitIsAtLeastATenthOfASecond(): void
    {
        foreach ([0.05, -1.0, \NAN] as $seconds) {
            $failure = self::thrown(\ValueError::class, static fn() => new HttpServerOptions(blockWarning: $seconds));
            self::assertStringContainsString('blockWarning must be 0 or at least 0.1', $failure->getMessage());
        }
        self::assertSame(\INF, (new HttpServerOptions(blockWarning: \INF))->blockWarning);
    }

    private static function handle(ServerRequestInterface $request): Response
    {
        $seconds = (float) $request->getUri()->getQuery();
        $block = static function () use ($seconds): void {
            usleep((int) ($seconds * 1e6));
        };
        switch ($request->getUri()->getPath()) {
            case '/wait':
                delay($seconds);
                break;
            case '/wait-and-block':
                delay(0.05);
                $block();
                break;
            case '/block-and-wait':
                $block();
                delay(0.05);
                break;
            case '/stream':
                return Response::stream((static function () use ($block): \Generator {
                    delay(0.05);
                    yield 'begin';
                    $block();
                    delay(0.05);
                    yield 'end';
                })());
            default:
                $block();
        }

        return Response::text('done');
    }

    /** @param array<string, string> $context */
    private function assertWarning(string $pattern, float $seconds, array $context): void
    {
        $log = $this->log();
        Eventually::holds(static fn(): bool => $log->all !== [], 'it is logged');

        self::assertCount(1, $log->all, implode("\n", $log->messages()));
        $request = isset($context['route']) ? ['method' => 'GET', 'client_ip' => '127.0.0.1'] : [];
        self::assertSame('warning', $log->all[0]['level']);
        self::assertEquals($context + $request, array_diff_key($log->all[0]['context'], ['target' => '']));
        self::assertSame(1, preg_match($pattern, $log->all[0]['message'], $match), $log->all[0]['message']);
        self::assertGreaterThanOrEqual($seconds, (float) $match[1]);
        self::assertLessThan($seconds + 2, (float) $match[1]);
    }
}
