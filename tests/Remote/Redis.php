<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use Spindle\Remote\Testing\TemporaryRedis;

/**
 * The Redis server that all tests of a run share. It is started when the first test needs it, and ends with the
 * process. Each test has its own queues. A test that ends the server, or needs other settings, starts its own server.
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
