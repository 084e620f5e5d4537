<?php

declare(strict_types=1);

namespace Spindle\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Passes each request to a handler that handles no other request at the same time.
 *
 * Applications such as Slim need this pool, because they keep data of a request in shared objects. The constructor
 * creates one handler. If all handlers are in use, the pool creates another one. The pool keeps all handlers, and
 * reuses the one that was released last.
 *
 * A handler is released when its `handle()` returns or throws. So the handler may get another request while a generator
 * still produces the body of its previous response.
 */
final class HandlerPool implements RequestHandlerInterface
{
    /** @var list<RequestHandlerInterface> in the order of their release */
    private array $idle;

    /** @var \WeakMap<RequestHandlerInterface, true> all handlers, idle and in use */
    private \WeakMap $created;

    /** @param \Closure(): RequestHandlerInterface $create returns a new handler in each call, and may wait */
    public function __construct(private readonly \Closure $create)
    {
        $this->created = new \WeakMap();
        $this->idle = [$this->create()];
    }

    /** @throws \LogicException when the closure has returned the same handler twice */
    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $handler = array_pop($this->idle) ?? $this->create();
        try {
            return $handler->handle($request);
        } finally {
            $this->idle[] = $handler;
        }
    }

    private function create(): RequestHandlerInterface
    {
        $handler = ($this->create)();
        if (isset($this->created[$handler])) {
            throw new \LogicException(
                'The closure of the HandlerPool returned the same handler twice; create a new one in each call',
            );
        }
        $this->created[$handler] = true;

        return $handler;
    }
}
