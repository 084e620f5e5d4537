<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use PHPUnit\Framework\Attributes\After;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Http\Internal\Server\BodyReader;
use Spindle\Http\Internal\Server\Connection;
use Spindle\Http\Internal\Server\ConnectionReference;
use Spindle\Http\Internal\Server\Phase;
use Spindle\Http\Internal\Server\ServerExchange;
use Spindle\Http\Internal\Server\Service;
use Spindle\Http\Internal\Server\TimedTransport;
use Spindle\Http\Response;
use Spindle\Tests\Streams;

/** Creates a connection whose client is a stream of the test. */
trait OnOneConnection
{
    private const WRITE_SECONDS = 40.0;
    private const WINDOW_SECONDS = 7.0;
    private const MIN_RATE = 100;

    /** More than the kernel's buffers hold. */
    private const LARGE_BYTES = 4_000_000;

    private Connection $connection;

    private Service $service;

    private TimedTransport $timed;

    /** A parser and a reader of bodies that use the connection's transport, but receive their bytes from the test. */
    protected RequestParser $parser;
    protected BodyReader $reader;

    /** @var resource */
    private $client;

    protected function setUp(): void
    {
        [$server, $this->client] = Streams::pair();
        stream_set_blocking($server, false);
        stream_set_blocking($this->client, false);
        $options = new HttpServerOptions(
            minBodyRate: self::MIN_RATE,
            rateWindow: self::WINDOW_SECONDS,
            writeTimeout: self::WRITE_SECONDS,
            maxBodyBytes: 1_000,
        );
        $this->service = new Service(static fn(): Response => Response::text(''), $options);
        $this->connection = new Connection($server, $this->service, self::peer());
        $this->timed = $this->connection->timed;
        $this->parser = new RequestParser($this->service->messageLimits);
        $this->reader = new BodyReader($this->parser, $this->timed, $this->service);
    }

    #[After(5)]
    protected function closeConnection(): void
    {
        $this->connection->close();
        if (\is_resource($this->client)) {
            fclose($this->client);
        }
    }

    private function exchange(?int $length = 0, bool $expectsContinue = false): ServerExchange
    {
        $head = new Head();
        [$head->length, $head->expectsContinue] = [$length, $expectsContinue];
        $reference = new ConnectionReference($this->connection, self::peer(), $this->service->options->forms);

        return new ServerExchange($reference, $head, (int) hrtime(true));
    }

    private static function peer(): Peer
    {
        return Peer::of('', 'unix', false);
    }

    /** Receives all bytes that have arrived at the client. */
    private function received(): string
    {
        return (string) stream_get_contents($this->client);
    }

    /** Makes the kernel's buffers full, so that further bytes are not accepted until the client receives some. */
    private function fillBuffers(): void
    {
        self::assertFalse($this->timed->transport->send(str_repeat('x', self::LARGE_BYTES)));
    }

    /** Checks the phase, and the seconds until its deadline. */
    private function assertPhase(Phase $phase, float $seconds): void
    {
        self::assertSame($phase, $this->timed->phase);
        self::assertEqualsWithDelta($seconds, ($this->timed->deadline - hrtime(true)) / 1e9, 0.5);
    }
}
