<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Access to classes of packages that may not be installed, so that code can't name them. */
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

    /** @param mixed $object an object or the name of a class */
    public static function call(mixed $object, string $method, mixed ...$arguments): mixed
    {
        $callable = [$object, $method];
        \assert(\is_callable($callable));

        return $callable(...$arguments);
    }
}
