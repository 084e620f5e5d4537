<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\Internal\Middleware\ClientDisconnect;
use Spindle\Http\Internal\Middleware\ErrorPage;

/**
 * Turns exceptions of handlers into responses. The client's Accept header selects JSON (RFC 9457), HTML or plain text.
 * An {@see HttpException} determines the status, message and headers of the response. If that status is 500 or above,
 * the previous exception of the HttpException is logged. For any other exception, the response has status 500 and no
 * details, and the exception is logged.
 *
 * Logged exceptions go to the given logger, else to the server's logger, else to PHP's error log.
 *
 * If the request's cancellation, for example after a disconnect, caused an exception, it is thrown and not logged.
 */
final class ErrorHandler implements MiddlewareInterface
{
    private bool $showsTraces = false;

    /**
     * @param LoggerInterface|null $logger gets the exceptions, at error level; null for the server's logger
     * @param bool                 $json   whether clients without a preference get JSON instead of plain text
     */
    public function __construct(
        private readonly ?LoggerInterface $logger = null,
        private readonly bool $json = false,
    ) {}

    /**
     * Creates a middleware for development. Every client gets the trace of an exception, without arguments. The
     * response to an HttpException has no trace.
     */
    public static function showingTraces(?LoggerInterface $logger = null, bool $json = false): self
    {
        $middleware = new self($logger, $json);
        $middleware->showsTraces = true;

        return $middleware;
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        try {
            return $this->respond($request, $handler);
        } catch (\Throwable $failure) {
            if (ClientDisconnect::caused($failure)) {
                throw $failure;
            }
            $this->log($request, $failure, 500);

            return (new ErrorPage(
                500,
                failure: $this->showsTraces ? $failure : null,
            ))->response($request->getHeaderLine('Accept'), $this->json);
        }
    }

    private function respond(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        try {
            return $handler->handle($request);
        } catch (HttpException $httpException) {
            $cause = $httpException->getPrevious();
            if ($httpException->status >= 500 && $cause !== null && !ClientDisconnect::caused($cause)) {
                $this->log($request, $cause, $httpException->status);
            }

            return (new ErrorPage(
                $httpException->status,
                $httpException->getMessage(),
                $httpException->headers,
            ))->response($request->getHeaderLine('Accept'), $this->json);
        }
    }

    private function log(ServerRequestInterface $request, \Throwable $failure, int $status): void
    {
        $exchange = $request->getAttribute(RequestExchange::class);
        $logger = $this->logger ?? ($exchange instanceof RequestExchange ? $exchange->logger() : null);
        if ($logger === null) {
            error_log(
                'Spindle: ' . json_encode(
                    "{$request->getMethod()} {$request->getRequestTarget()}: " . ErrorPage::describe($failure),
                    ErrorPage::JSON_FLAGS,
                ),
            );

            return;
        }
        $fields = $exchange instanceof RequestExchange ? $exchange->logFields() : [];
        $logger->error("{method} {target} was answered with {$status}, because its handler failed", [
            'exception' => $failure,
            'method' => $request->getMethod(),
            'target' => $request->getRequestTarget(),
            'request_id' => $request->getAttribute('request-id') ?? $fields['request_id'] ?? null,
        ] + $fields);
    }
}
