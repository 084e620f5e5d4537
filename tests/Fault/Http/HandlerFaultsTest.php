<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Http\HttpServerOptions;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServerProcess;
use Spindle\Tests\Http\StartsServers;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

/** Handlers that end the process, or would without protection. */
final class HandlerFaultsTest extends TidyTestCase
{
    use OwnDirectory;
    use StartsServers;

    public function testWaitingRequestsGet500WhenAHandlerExits(): void
    {
        $server = $this->startServer();
        $waiting = $server->client()->get('/wait?1000');
        $streaming = $server->client()->get('/stream?1000');
        $streaming->until('begin');
        $idle = $server->client();
        $exiting = $server->client()->get('/')->get('/exit?3');

        self::assertSame(200, $exiting->response()->status, 'what was answered before');
        $response = $exiting->response();
        self::assertSame([500, 'close'], [$response->status, $response->header('connection')]);
        self::assertSame(500, $waiting->response()->status);
        self::assertSame("\r\n", $streaming->rest(), 'without the last chunk, so that the response is not complete');
        self::assertSame('', $idle->rest());
        self::assertSame(3, $server->wait());
        self::assertFalse($server->hasReturned());
    }

    public function testPiecesBeforeAnExitAreSent(): void
    {
        $server = $this->startServer();
        $client = $server->client()->get('/stream-exit?3');

        $client->until("\r\n\r\n");
        self::assertSame(
            'onetwosix',
            preg_replace('/([1-9])\r\n(\w+)\r\n/', '$2', $client->rest()),
            'the data of the chunks, without the last chunk',
        );
        self::assertSame(3, $server->wait());
    }

    public function testWaitingRequestsGet500WhenAHandlerExitsAfterAWait(): void
    {
        $server = $this->startServer();
        $exiting = $server->client()->get('/exit-later?0.1');
        $waiting = $server->client()->get('/wait?1000');

        self::assertSame([500, 500], [$exiting->response()->status, $waiting->response()->status]);
        self::assertSame(4, $server->wait());
    }

    public function testWaitingRequestsGet500WhenAHandlerExhaustsTheMemory(): void
    {
        foreach (['/memory', '/memory-later?0.1'] as $target) {
            $server = $this->startServer(php: ['-d', 'memory_limit=32M', '-d', 'display_errors=stderr']);
            $waiting = $server->client()->get('/wait?1000');
            self::settle($server);
            $greedy = $server->client()->get($target);

            self::assertSame([500, 500], [$greedy->response()->status, $waiting->response()->status]);
            self::assertSame(255, $server->wait());
            self::assertStringContainsString('Allowed memory size', implode("\n", $server->log()));
        }
    }

    public function testOthersAreServedWhileAHandlerNeverReturns(): void
    {
        $server = $this->startServer(options: new HttpServerOptions(handlerTimeout: 0.3));
        $hanging = $server->client()->get('/hang');
        self::settle($server);

        self::assertSame(503, $hanging->response()->status);
        $entry = 'The handler of {method} {target} did not answer within 0.3 s';
        Eventually::holds(static fn(): bool => $server->log() === [$entry], 'the server logs the late handler');
        self::settle($server);
    }

    public function testAnExceptionInAFiberOfAHandlerEndsNothing(): void
    {
        $server = $this->startServer();
        foreach (['/fiber-throws' => 'from a fiber', '/callback-throws' => 'from a callback'] as $target => $message) {
            $waiting = $server->client()->get('/wait?0.2');

            self::assertSame('answered', $server->client()->get($target)->response()->body);
            self::assertSame('waited', $waiting->response()->body);
            Eventually::holds(
                static fn(): bool => str_contains(implode("\n", $server->log()), $message),
                'it is logged',
            );
        }
        self::assertTrue($server->isRunning());
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkOfAHandlerThatEndsSendsNoResponse(): void
    {
        $server = $this->startServer();
        $waiting = $server->client()->get('/wait?0.3');
        $idle = $server->client()->get('/');
        $idle->response();
        self::assertSame('forked', $server->client()->get('/fork')->response()->body);

        self::assertSame('waited', $waiting->response()->body);
        self::assertSame(200, $idle->get('/')->response()->status);
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkOfAHandlerThatWaitsReadsNoRequestsOfOtherClients(): void
    {
        $server = $this->startServer();
        $clients = array_map(static fn(): RawClient => $server->client()->get('/'), range(1, 8));
        foreach ($clients as $client) {
            $client->response();
        }
        $forking = $server->client()->get('/fork-waits'); // stays open, so that the fork reads no end of a connection
        self::assertSame('forked', $forking->response()->body);
        [$fork] = array_keys(Processes::childrenOf($server->pid()));
        $server->signal(\SIGSTOP); // only the fork can read the requests
        foreach ($clients as $client) {
            $client->get('/pid');
        }
        Eventually::holds(static fn(): bool => !Processes::isAlive($fork), 'the fork is killed');
        $server->signal(\SIGCONT);

        foreach ($clients as $client) {
            self::assertSame((string) $server->pid(), $client->response()->body);
        }
    }

    #[RequiresPhpExtension('FFI')]
    #[RequiresPhpExtension('pcntl')]
    public function testAForkOfAHandlerThatEndsDoesNotEndTlsConnections(): void
    {
        [$certificate, $key] = (new Certificates($this->path()))->forServer('server.test');
        $server = $this->startServer(new HttpServerOptions($certificate, $key));
        $idle = $server->client()->get('/');
        $idle->response();
        $forking = $server->client();
        self::assertSame('forked', $forking->get('/fork')->response()->body);
        self::assertSame('forked', $forking->get('/fork')->response()->body);

        self::assertSame(200, $idle->get('/')->response()->status);
    }

    public function testAHandlerThatBlocksDelaysOtherResponsesOnlyForATime(): void
    {
        $server = $this->startServer(options: new HttpServerOptions(headTimeout: 0.3, idleTimeout: 0.3));
        $kept = $server->client()->get('/');
        $kept->response();
        $blocking = $server->client()->get('/sleep?1');
        $late = $server->client()->get('/');
        $kept->get('/');

        self::assertSame('slept', $blocking->response()->body);
        self::assertSame(200, $late->response()->status, 'its request was there in time');
        self::assertSame(200, $kept->response()->status, 'and so was the one of this');
    }

    private static function settle(ServerProcess $server): void
    {
        self::assertSame(200, $server->client()->get('/')->response()->status);
    }
}
