<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use Spindle\Remote\Testing\TemporaryRedis;

/**
 * The one Redis that all tests of a run share, started when the first one needs it and gone with the process. Each test has
 * queues of its own. A test that ends the server, or needs other settings, starts one of its own.
 *
 * A test class that uses it has {@see UsesRedis}.
 */
final class Redis
{
    private static ?TemporaryRedis $shared = null;

    public static function shared(): TemporaryRedis
    {
        return self::$shared ??= TemporaryRedis::start();
    }
}
