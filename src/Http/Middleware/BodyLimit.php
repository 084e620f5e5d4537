<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\BodyLimited;

/**
 * Raises or lowers the limit of the request body for the handlers behind this middleware. A request with a larger body
 * is answered with 413. A known length is checked before the body is read. Spindle's own server checks a body of
 * unknown length at each read. Under another server, such as PHP-FPM, such a body is not limited.
 *
 * JSON and forms have further limits in {@see \Spindle\Http\FormLimits}. For longer JSON than 1 MiB, also raise
 * FormLimits::$maxTextBytes.
 */
final readonly class BodyLimit implements MiddlewareInterface
{
    /** @throws \ValueError when $bytes is negative */
    public function __construct(private int $bytes)
    {
        if ($bytes < 0) {
            throw new \ValueError("The limit of a body must be 0 bytes or more, not {$bytes}");
        }
    }

    /** @throws HttpException 413 when the body is known to be larger than the limit */
    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $body = $request->getBody();
        $declared = preg_match('/^0*+(\d++)$/D', $request->getHeaderLine('Content-Length'), $digits) === 1
            ? $digits[1]
            : '';
        if (\strlen($declared) > 18 || max((int) $declared, $body->getSize()) > $this->bytes) {
            throw new HttpException(413, "The body is larger than {$this->bytes} bytes");
        }
        if ($body instanceof BodyLimited) {
            $body->limit($this->bytes);
        }

        return $handler->handle($request);
    }
}
