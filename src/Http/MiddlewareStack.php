<?php

declare(strict_types=1);

namespace Spindle\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Internal\App\HandlerResult;

/**
 * A handler that is wrapped in middleware. The stack keeps no state, so it can handle several requests at a time.
 *
 * Recommended order of Spindle's middleware, from the outermost: TrustedProxies, RequestId, AccessLog, Compression,
 * Cors, ErrorHandler, then middleware of single routes, such as BodyLimit.
 */
final readonly class MiddlewareStack implements RequestHandlerInterface
{
    private ?MiddlewareInterface $outermost;

    private ?self $rest;

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface $handler
     * @param MiddlewareInterface ...$middleware the first is the outermost: it gets the request first and the response
     *                                           last
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

        return $this->handler instanceof \Closure
            ? HandlerResult::response(($this->handler)($request), $this->handler)
            : $this->handler->handle($request);
    }
}
