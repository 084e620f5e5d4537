<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Attributes\Group;

/** Beside what this server can break: all that the application does, which other tests show in `spindle serve`. */
#[Group('full')]
final class BuiltInServerInFullTest extends AircraftContract
{
    protected static function start(string $dsn): Host
    {
        return new BuiltInServer($dsn);
    }

    /** The handler waits for the whole body, whatever length was announced. */
    protected static function refusesWith(int $status): bool
    {
        return $status !== 413;
    }
}
