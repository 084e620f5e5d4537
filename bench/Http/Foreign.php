<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Classes of packages that are not known to be there, so that none of them can be named. */
final class Foreign
{
    /** @return class-string */
    public static function found(string $class): string
    {
        \assert(class_exists($class));

        return $class;
    }

    public static function make(string $class, mixed ...$arguments): object
    {
        $class = self::found($class);

        return new $class(...$arguments);
    }

    /** @param mixed $object or the name of a class */
    public static function call(mixed $object, string $method, mixed ...$arguments): mixed
    {
        $callable = [$object, $method];
        \assert(\is_callable($callable));

        return $callable(...$arguments);
    }
}
