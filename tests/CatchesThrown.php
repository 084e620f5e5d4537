<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Lets a test examine an exception that it expects. */
trait CatchesThrown
{
    /**
     * Returns the exception that the work throws, after a check of its class.
     *
     * @template T of \Throwable
     *
     * @param class-string<T>   $class
     * @param \Closure(): mixed $work
     *
     * @return T
     */
    protected static function thrown(string $class, \Closure $work): \Throwable
    {
        try {
            $work();
        } catch (\Throwable $thrown) {
            self::assertInstanceOf($class, $thrown, "{$thrown->getMessage()}\n{$thrown->getTraceAsString()}");

            return $thrown;
        }
        self::fail("No {$class} is thrown");
    }
}
