<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Handles calls of its private methods from other classes, and creates callables of these methods. */
class MagicMethods
{
    /** @param array<mixed> $arguments */
    public function __call(string $name, array $arguments): string
    {
        return "__call {$name}";
    }

    /** @param array<mixed> $arguments */
    public static function __callStatic(string $name, array $arguments): string
    {
        return "__callStatic {$name}";
    }

    public function ownMethod(): \Closure
    {
        return $this->method(...);
    }

    public static function ownStaticMethod(): \Closure
    {
        return self::staticMethod(...);
    }

    private function method(): string
    {
        return 'private';
    }

    private static function staticMethod(): string
    {
        return 'private static';
    }
}
