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
}
