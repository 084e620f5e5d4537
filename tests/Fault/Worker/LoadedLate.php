<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** For the autoloader of a worker whose task has changed what it could. */
final class LoadedLate
{
    public static function answer(): int
    {
        return 42;
    }
}
