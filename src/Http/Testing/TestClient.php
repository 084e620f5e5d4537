<?php

declare(strict_types=1);

namespace Spindle\Http\Testing;

use Amp\Cancellation;
use Amp\CancelledException;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\AppException;
use Spindle\Http\BackgroundWork;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\App\AppLoader;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Server\Connection;
use Spindle\Http\Internal\Server\Service;
use Spindle\Http\Internal\Testing\FailureLog;
use Spindle\Http\Internal\Testing\TestConversation;
use Spindle\Http\Response;
use Spindle\Internal\Network\CloseOnExec;

/**
 * Calls an application in the test's own process, without a port. The server's code reads requests from a socket pair.
 *
 * Example: `(new TestClient(__DIR__ . '/../app.php'))->get('/aircraft/D-EABC')`. Each request has its own connection.
 * Unlike in `spindle serve`, all fibers share the output buffers. Functions such as header() are those of PHP, and do
 * not throw {@see \Spindle\Http\UnsupportedFunctionException}.
 */
final class TestClient
{
    private const SERVER_ADDRESS = '127.0.0.1:80';
    private const CLIENT_ADDRESS = '127.0.0.1:40000';

    private readonly Service $service;
    private readonly FailureLog $failures;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface|string $app a handler, or
     *     the path of a file, as for {@see \Spindle\Http\Supervisor}
     * @param HttpServerOptions|null $options replace the options of the application; null for no replacement
     *
     * @throws AppException when the file can't be loaded or returns no handler
     */
    public function __construct(RequestHandlerInterface|\Closure|string $app, ?HttpServerOptions $options = null)
    {
        $application = AppLoader::of($app);
        $this->failures = new FailureLog();
        $this->service = new Service($application->handler, $options ?? $application->options, $this->failures);
    }

    /**
     * @param string                             $target  such as "/path?query"
     * @param array<string, string|list<string>> $headers Host defaults to "localhost", and Content-Length to the length
     *     of the body
     *
     * @return Response without the header fields of the connection, and with the complete body
     *
     * @throws \UnexpectedValueException when the response is incomplete
     */
    public function request(
        string $method,
        string $target,
        #[\SensitiveParameter]
        array $headers = [],
        #[\SensitiveParameter]
        string $body = '',
        ?Cancellation $cancellation = null,
    ): Response {
        return $this->connect()->exchange($method, $target, $headers, $body, $cancellation);
    }

    /**
     * Returns a response as soon as its head has arrived. The body may be endless, such as a stream of events. A read
     * of the body waits for the next bytes that the handler sends. The body's close() closes the connection. Then the
     * server ends the handler's generator.
     *
     * @param array<string, string|list<string>> $headers see {@see request()}
     * @param Cancellation|null $cancellation ends the wait for the head, and each read of the body that waits
     *
     * @return Response whose body throws an \UnexpectedValueException if the connection ends before the body does
     */
    public function stream(
        string $method,
        string $target,
        #[\SensitiveParameter]
        array $headers = [],
        #[\SensitiveParameter]
        string $body = '',
        ?Cancellation $cancellation = null,
    ): Response {
        return $this->connect()->stream($method, $target, $headers, $body, $cancellation);
    }

    /** @param array<string, string|list<string>> $headers */
    public function get(
        string $target,
        #[\SensitiveParameter]
        array $headers = [],
        ?Cancellation $cancellation = null,
    ): Response {
        return $this->request('GET', $target, $headers, cancellation: $cancellation);
    }

    /** @param array<string, string|list<string>> $headers */
    public function post(
        string $target,
        #[\SensitiveParameter]
        string $body,
        string $type = 'application/x-www-form-urlencoded',
        #[\SensitiveParameter]
        array $headers = [],
        ?Cancellation $cancellation = null,
    ): Response {
        return $this->request('POST', $target, ['Content-Type' => $type] + $headers, $body, $cancellation);
    }

    /**
     * @return list<\Throwable> exceptions that the server has logged. An HttpException that becomes a response is only
     *         logged if the exception has a status of 500 or above and a previous exception
     */
    public function failures(): array
    {
        return $this->failures->failures;
    }

    /**
     * Waits until all functions of {@see BackgroundWork} have ended, also those of other clients in this process. If a
     * function throws, the event loop calls its error handler. Without one, the wait throws an UncaughtThrowable.
     *
     * @param Cancellation|null $cancellation ends the wait; the functions continue
     *
     * @throws CancelledException
     * @throws \LogicException when one of the functions calls this method, and so would wait for itself
     */
    public function awaitBackgroundWork(?Cancellation $cancellation = null): void
    {
        if (BackgroundWork::isCurrent()) {
            throw new \LogicException('A function of BackgroundWork cannot wait for its own end. Wait in the test');
        }
        BackgroundWork::awaitEnd($cancellation);
    }

    private function connect(): TestConversation
    {
        $pair = CloseOnExec::call(static fn() => stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0), 2);
        if ($pair === false) {
            throw new \RuntimeException('Could not create a pair of sockets. Are too many files open?');
        }
        foreach ($pair as $stream) {
            stream_set_blocking($stream, false);
            stream_set_read_buffer($stream, 0);
        }
        $peer = Peer::of(self::CLIENT_ADDRESS, self::SERVER_ADDRESS, false);

        return new TestConversation($pair[1], new Connection($pair[0], $this->service, $peer));
    }
}
