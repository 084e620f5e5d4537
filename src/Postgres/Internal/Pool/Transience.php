<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\ConnectionFailedException;

/** Whether a failure to connect may pass by itself, soon: a server that starts, stops or is full. */
final class Transience
{
    private const STATES = ['53300', '57P01', '57P02', '57P03', '08001', '08006'];

    public static function of(\Throwable $failure): bool
    {
        return $failure instanceof ConnectionFailedException && ($failure->sqlState === null || \in_array($failure->sqlState, self::STATES, true));
    }
}
