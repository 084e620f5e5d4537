<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use PHPUnit\Framework\Attributes\After;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Tests\Eventually;

/** Runs a server in the process of the test, and ends it with the test. */
trait ServesHttp
{
    private ?HttpServer $server = null;

    private ?Records $log = null;

    protected bool $keepsBlockWarnings = false;

    protected string $address = '';

    /** @var list<HttpServer> */
    protected array $servers = [];

    /** @var list<RawClient> */
    protected array $clients = [];

    #[After(5)]
    protected function stopServers(): void
    {
        foreach ($this->clients as $client) {
            $client->close();
        }
        foreach ($this->servers as $server) {
            $server->kill();
        }
        if ($this->servers !== [] && $this->status()->isSuccess()) {
            Eventually::holds(
                fn(): bool => array_filter(
                    $this->servers,
                    static fn(HttpServer $server): bool => $server->statistics()->inFlight > 0,
                ) === [],
                'no handler is left behind',
            );
        }
        [$this->servers, $this->clients, $this->server, $this->log] = [[], [], null, null];
    }

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface $handler
     * @param LoggerInterface|null $logger null to keep the entries for {@see log()}
     */
    protected function serve(
        RequestHandlerInterface|\Closure $handler,
        ?HttpServerOptions $options = null,
        string $address = '127.0.0.1:0',
        ?LoggerInterface $logger = null,
    ): HttpServer {
        $this->log = new Records($this->keepsBlockWarnings);
        $this->servers[] = $this->server = new HttpServer($handler, $options, $logger ?? $this->log);
        [$this->address] = $this->server->start($address);

        return $this->server;
    }

    /** Returns the server that was started last. */
    protected function server(): HttpServer
    {
        return $this->server ?? throw new \LogicException('No server was started');
    }

    /** Returns the log of that server. */
    protected function log(): Records
    {
        return $this->log ?? throw new \LogicException('No server was started');
    }

    /** Returns a client connected to that server. */
    protected function client(): RawClient
    {
        return $this->clients[] = RawClient::connect($this->address);
    }
}
