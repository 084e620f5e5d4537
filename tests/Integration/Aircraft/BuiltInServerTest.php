<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

final class BuiltInServerTest extends HostContract
{
    protected static function start(string $dsn): Host
    {
        return new BuiltInServer($dsn);
    }

    /** It waits for the whole body, however long that is said to be. */
    protected static function refusesWith(int $status): bool
    {
        return $status !== 413;
    }
}
