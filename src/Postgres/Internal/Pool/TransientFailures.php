<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\ConnectionFailedException;

/** Failures to connect that may pass soon: the server is starting, stopping, unreachable or out of connections. */
final class TransientFailures
{
    /** The state with which PgBouncer reports that it can't connect to its server. */
    private const POOLER_WITHOUT_SERVER = '08P01';

    /** too_many_connections; admin_shutdown, crash_shutdown, cannot_connect_now; connection exceptions (08). */
    private const SQL_STATES = ['53300', '57P01', '57P02', '57P03', '08001', '08006', self::POOLER_WITHOUT_SERVER];

    public static function includes(\Throwable $failure): bool
    {
        return $failure instanceof ConnectionFailedException
            && ($failure->sqlState === null || \in_array($failure->sqlState, self::SQL_STATES, true));
    }

    /** Returns whether no server answered. The failure is only transient if a server has answered before. */
    public static function isNoServer(\Throwable $failure): bool
    {
        return $failure instanceof ConnectionFailedException
            && \in_array($failure->sqlState, [null, self::POOLER_WITHOUT_SERVER], true);
    }
}
