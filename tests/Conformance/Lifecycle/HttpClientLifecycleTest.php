<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\DeferredFuture;
use Amp\Future;
use Amp\Socket\Socket;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestBody;
use Spindle\Lifecycle;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ScriptedServer;

/** A unit of work is a request, up to the end of the response's body. */
final class HttpClientLifecycleTest extends LifecycleContract
{
    use EndsInTime;
    use RefusesCloseWithinWork;

    private ScriptedServer $server;

    /** @var DeferredFuture<null> what the server waits for before the second half of a body */
    private DeferredFuture $gate;

    protected function setUp(): void
    {
        $this->gate = new DeferredFuture();
        $gate = $this->gate->getFuture();
        $this->server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server) use ($gate): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok");
            $gate->await();
            $socket->write('ok');
        });
    }

    protected function tearDown(): void
    {
        $this->finish();
        $this->server->close();
    }

    protected function create(): Lifecycle
    {
        return new HttpClient();
    }

    protected function begin(Lifecycle $object): Future
    {
        \assert($object instanceof HttpClient);
        $response = null;
        $work = Async::run(function () use ($object, &$response): bool {
            $response = $object->get($this->server->url());

            return (string) $response->getBody() === 'okok';
        });
        Eventually::holds(static function () use (&$response): bool {
            return $response !== null;
        }, 'the head has arrived');

        return $work;
    }

    protected function runWithinWork(Lifecycle $object, \Closure $call): void
    {
        \assert($object instanceof HttpClient);
        $pieces = (static function () use ($call): \Generator {
            yield 'a';
            $call();
        })();
        $server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server): void {
            $body = explode("\r\n\r\n", (string) $server->readRequest($socket), 2)[1] ?? '';
            $socket->write("HTTP/1.1 100 Continue\r\n\r\n");
            while (!str_contains($body, "0\r\n\r\n") && ($piece = $socket->read()) !== null) {
                $body .= $piece;
            }
            $socket->write("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        });
        $object->request('POST', $server->url(), [], RequestBody::stream($pieces));
        $server->close();
    }

    protected function finish(): void
    {
        if (!$this->gate->isComplete()) {
            $this->gate->complete();
        }
    }

    protected function giveMore(Lifecycle $object): void
    {
        \assert($object instanceof HttpClient);
        $object->get($this->server->url());
    }

    protected function refusal(): string
    {
        return ClientClosedException::class;
    }
}
