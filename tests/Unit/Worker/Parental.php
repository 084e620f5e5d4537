<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Says which class was called. */
class Parental
{
    final public function __construct() {}

    public static function called(): string
    {
        return static::class;
    }

    public static function own(): \Closure
    {
        return static fn(): string => self::class;
    }

    public static function late(): \Closure
    {
        return static fn(): string => static::class;
    }

    public static function making(): \Closure
    {
        return static fn(): object => new static();
    }

    public static function asking(): \Closure
    {
        return static fn(): string => \get_called_class();
    }

    public function lately(): \Closure
    {
        return fn(): string => static::class;
    }
}
