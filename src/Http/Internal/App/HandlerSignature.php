<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\App;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Internal\Message\Request;

/** Checks whether a closure with parameters can be called with only a request. */
final class HandlerSignature
{
    /** @return string|null why the closure can't be called, such as "needs 2 arguments"; null when it can */
    public static function problem(\Closure $closure): ?string
    {
        $function = new \ReflectionFunction($closure);
        $required = $function->getNumberOfRequiredParameters();
        [$first] = $function->getParameters();
        $type = $first->getType();

        return match (true) {
            $type !== null && !self::acceptsRequest($type)
                => "has the first parameter {$type} \${$first->getName()}, which is not a request",
            $required > 1 => "needs {$required} arguments",
            default => null,
        };
    }

    private static function acceptsRequest(\ReflectionType $type): bool
    {
        return match (true) {
            $type instanceof \ReflectionUnionType => array_filter($type->getTypes(), self::acceptsRequest(...)) !== [],
            $type instanceof \ReflectionIntersectionType => array_filter(
                $type->getTypes(),
                static fn(\ReflectionType $part): bool => !self::acceptsRequest($part),
            ) === [],
            $type instanceof \ReflectionNamedType => $type->isBuiltin()
                ? \in_array($type->getName(), ['mixed', 'object'], true)
                : self::mayBeRequest($type->getName()),
            default => true,
        };
    }

    /** Returns whether a request can have this type. Middleware may pass on a request of another library. */
    private static function mayBeRequest(string $class): bool
    {
        return is_a(Request::class, $class, true)
            || is_subclass_of($class, ServerRequestInterface::class)
            || \in_array($class, ['self', 'static', 'parent'], true);
    }
}
