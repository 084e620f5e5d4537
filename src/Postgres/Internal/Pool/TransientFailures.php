<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\ConnectionFailedException;

/** Failures to connect that may pass soon: the server is starting, stopping or unreachable, or accepts no more. */
final class TransientFailures
{
    /** too_many_connections, shutdown, crash, startup; and two states of class 08, connection exceptions. */
    private const SQL_STATES = ['53300', '57P01', '57P02', '57P03', '08001', '08006'];

    public static function includes(\Throwable $failure): bool
    {
        return $failure instanceof ConnectionFailedException
            && ($failure->sqlState === null || \in_array($failure->sqlState, self::SQL_STATES, true));
    }
}
