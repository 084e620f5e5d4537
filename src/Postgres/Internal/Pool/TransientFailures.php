<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\ConnectionFailedException;

/** Tells whether a failure to connect may pass soon: the server is starting, stopping, full or out of reach. */
final class TransientFailures
{
    private const SQL_STATES = ['53300', '57P01', '57P02', '57P03', '08001', '08006'];

    public static function of(\Throwable $failure): bool
    {
        return $failure instanceof ConnectionFailedException
            && ($failure->sqlState === null || \in_array($failure->sqlState, self::SQL_STATES, true));
    }
}
