<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

final class BuiltInServerTest extends HostContract
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
