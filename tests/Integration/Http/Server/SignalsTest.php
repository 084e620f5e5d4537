<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Http\HttpServerOptions;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServerProcess;
use Spindle\Tests\Http\StartsServers;
use Spindle\Tests\TidyTestCase;

use function Amp\Future\await;

/** Stop signals to a server process. */
#[RequiresPhpExtension('pcntl')]
final class SignalsTest extends TidyTestCase
{
    use StartsServers;

    /** @return iterable<string, array{int}> */
    public static function signals(): iterable
    {
        yield 'SIGTERM' => [\SIGTERM];
        yield 'SIGINT' => [\SIGINT];
    }

    #[DataProvider('signals')]
    public function testASignalStopsTheServerAfterReceivedRequestsAreAnswered(int $signal): void
    {
        $server = $this->startServer(options: new HttpServerOptions(idleGracePeriod: 0.1));
        $idle = $server->client()->get('/');
        $idle->response();
        $waiting = $server->client()->get('/wait?0.5');
        $streaming = $server->client()->get('/stream?0.5');
        $streaming->until('begin');
        $server->signal($signal);
        self::awaitRefusal($server);

        $response = $waiting->response();
        self::assertSame(['waited', 'close'], [$response->body, $response->header('connection')]);
        $waiting->close();
        self::assertSame("\r\n3\r\nend\r\n0\r\n\r\n", $streaming->rest());
        self::assertTrue($idle->isEnded());
        self::assertSame(0, $server->wait());
        self::assertTrue($server->hasReturned());
    }

    public function testASecondSignalEndsTheServerAtOnce(): void
    {
        $server = $this->startServer();
        $waiting = $server->client()->get('/wait?1000');
        $answered = $server->client()->get('/wait?0.5');
        self::settle($server);
        $server->signal(\SIGTERM);
        self::awaitRefusal($server);
        self::assertSame('waited', $answered->response()->body);
        $answered->close();
        self::assertTrue($server->isRunning());
        $server->signal(\SIGINT);

        self::assertSame('', $waiting->rest());
        Eventually::holds(static fn(): bool => $server->hasReturned(), 'it has returned');
    }

    public function testARequestThatTakesTooLongIsEnded(): void
    {
        $server = $this->startServer(options: new HttpServerOptions(stopTimeout: 0.3));
        $waiting = $server->client()->get('/hang');
        self::settle($server);
        $server->signal(\SIGTERM);

        self::assertStringContainsString('503 Service Unavailable', $waiting->rest());
        self::assertSame(0, $server->wait());
        self::assertTrue($server->hasReturned());
    }

    /** A client must be able to distinguish lost requests from answered ones. */
    public function testResponsesAreCompleteWhenTheServerStopsUnderLoad(): void
    {
        $server = $this->startServer();
        $clients = array_map(static fn(): RawClient => $server->client(), range(1, 20));
        $answered = 0;
        $load = static function (RawClient $client) use (&$answered): void {
            do {
                $response = $client->get('/wait?0.005')->response();
                self::assertSame('waited', $response->body);
                ++$answered;
            } while ($response->keepsConnection());
            $client->close();
        };
        $loads = array_map(static fn(RawClient $client) => Async::run(static fn() => $load($client)), $clients);
        Eventually::holds(static function () use (&$answered): bool {
            return $answered > 100;
        }, 'it is under load', 15);
        $server->signal(\SIGTERM);

        await($loads);
        self::assertSame(0, $server->wait());
    }

    /** Waits until the handler has begun. */
    private static function settle(ServerProcess $server): void
    {
        self::assertSame(200, $server->client()->get('/')->response()->status);
    }

    private static function awaitRefusal(ServerProcess $server): void
    {
        Eventually::holds(
            static fn(): bool => @stream_socket_client($server->address, $code, $message, 1) === false,
            'new connections are refused',
        );
    }
}
