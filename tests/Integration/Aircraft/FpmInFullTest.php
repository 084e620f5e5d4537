<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Attributes\Group;

/** The whole contract of the application on this server. Faster tests cover what only this server can break. */
#[Group('full')]
final class FpmInFullTest extends AircraftContract
{
    protected static function start(string $dsn): Host
    {
        return new NginxWithFpm($dsn);
    }

    protected static function refusesWith(int $status): bool
    {
        return true;
    }
}
