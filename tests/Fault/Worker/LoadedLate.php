<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** A class that a worker autoloads after its task has changed everything it could. */
final class LoadedLate
{
    public static function answer(): int
    {
        return 42;
    }
}
