<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Internal\Message\RequestExchange;

/**
 * Gives each request an id of 128 random bits, in the attribute "request-id" and in the response's X-Request-Id. The
 * server's log entries about the request have the id as "request_id" in their context.
 */
final class RequestId implements MiddlewareInterface
{
    private const HEADER = 'X-Request-Id';

    private bool $keepsIncoming = false;

    /** Creates a middleware that keeps clients' ids (1 to 128 of A-Z a-z 0-9 . _ -). So clients choose ids in logs. */
    public static function keepingIncoming(): self
    {
        $middleware = new self();
        $middleware->keepsIncoming = true;

        return $middleware;
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $id = $this->keepsIncoming ? $request->getHeaderLine(self::HEADER) : '';
        if (preg_match('/^[A-Za-z0-9._\-]{1,128}$/D', $id) !== 1) {
            $id = bin2hex(random_bytes(16));
        }

        $exchange = $request->getAttribute(RequestExchange::class);
        if ($exchange instanceof RequestExchange) {
            $exchange->addLogFields(['request_id' => $id]);
        }

        return $handler->handle($request->withAttribute('request-id', $id))->withHeader(self::HEADER, $id);
    }
}
