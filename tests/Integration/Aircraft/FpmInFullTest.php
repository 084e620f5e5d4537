<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Attributes\Group;

/** Beside what this server can break: all that the application does, which other tests show in `spindle serve`. */
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
