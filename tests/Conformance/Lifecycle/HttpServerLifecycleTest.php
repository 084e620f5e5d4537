<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;
use Spindle\Http\ServerClosedException;
use Spindle\Lifecycle;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServesHttp;

/** A unit of work is a request whose handler waits. */
final class HttpServerLifecycleTest extends LifecycleContract
{
    use EndsInTime;
    use ServesHttp;

    /** @var DeferredFuture<null> what handlers wait for */
    private DeferredFuture $gate;

    protected function setUp(): void
    {
        $this->gate = new DeferredFuture();
    }

    protected function create(): Lifecycle
    {
        $gate = $this->gate->getFuture();

        return $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            \assert($cancellation instanceof Cancellation);
            $gate->await($cancellation);

            return Response::text('answered');
        });
    }

    protected function begin(Lifecycle $object): Future
    {
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler has begun');

        return Async::run(static function () use ($client): bool {
            $response = $client->response();
            $client->close();

            return $response->body === 'answered';
        });
    }

    protected function finish(): void
    {
        $this->gate->complete();
    }

    protected function giveMore(Lifecycle $object): void
    {
        \assert($object instanceof HttpServer);
        $object->start('127.0.0.1:0');
    }

    protected function refusal(): string
    {
        return ServerClosedException::class;
    }
}
