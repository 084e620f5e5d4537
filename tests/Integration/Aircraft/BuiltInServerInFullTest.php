<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Attributes\Group;

/** The whole contract of the application on this server. Faster tests cover what only this server can break. */
#[Group('full')]
final class BuiltInServerInFullTest extends AircraftContract
{
    protected static function start(string $dsn): Host
    {
        return new BuiltInServer($dsn);
    }

    /** Excludes 413: the handler waits for the whole body, whatever length was announced. */
    protected static function refusesWith(int $status): bool
    {
        return $status !== 413;
    }
}
