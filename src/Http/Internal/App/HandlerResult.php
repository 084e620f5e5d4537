<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\App;

use Psr\Http\Message\ResponseInterface;

final class HandlerResult
{
    /** @throws \TypeError when the result is no response */
    public static function response(mixed $result, \Closure $handler): ResponseInterface
    {
        return $result instanceof ResponseInterface ? $result : throw self::notAResponse($result, $handler);
    }

    public static function notAResponse(mixed $result, \Closure $handler): \TypeError
    {
        $function = new \ReflectionFunction($handler);
        $instead = match (true) {
            \is_string($result) => 'Spindle\Http\Response::text($text) or html($html)',
            \is_array($result) => 'Spindle\Http\Response::json($data)',
            default => 'a Psr\Http\Message\ResponseInterface, such as Spindle\Http\Response::text($text)',
        };

        return new \TypeError(\sprintf(
            'The handler in %s on line %d returned %s instead of a response; return %s',
            $function->getFileName(),
            $function->getStartLine(),
            get_debug_type($result),
            $instead,
        ));
    }
}
