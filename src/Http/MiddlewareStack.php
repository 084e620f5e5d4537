<?php

declare(strict_types=1);

namespace Spindle\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * A handler behind middleware. It keeps nothing of a request: any number of them may be under way in it at once.
 *
 * Of the middleware here this order, from the outermost, has each know what it tells: TrustedProxies, RequestId, AccessLog,
 * Compression, Cors, Errors, and then what belongs to a route, such as BodyLimit.
 */
final readonly class MiddlewareStack implements RequestHandlerInterface
{
    private ?MiddlewareInterface $outermost;

    /** What stands behind the outermost. */
    private ?self $rest;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface $handler
     * @param MiddlewareInterface ...$middleware the first is the outermost: it sees the request first and the response last
     */
    public function __construct(private RequestHandlerInterface|\Closure $handler, MiddlewareInterface ...$middleware)
    {
        $this->outermost = array_shift($middleware);
        $this->rest = $this->outermost === null ? null : new self($handler, ...$middleware);
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        if ($this->outermost !== null && $this->rest !== null) {
            return $this->outermost->process($request, $this->rest);
        }

        return $this->handler instanceof \Closure ? ($this->handler)($request) : $this->handler->handle($request);
    }
}
