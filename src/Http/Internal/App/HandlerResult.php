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

        $type = get_debug_type($result);
        $place = "{$function->getFileName()} on line {$function->getStartLine()}";

        return new \TypeError("The handler in {$place} returned {$type} instead of a response; return {$instead}");
    }
}
