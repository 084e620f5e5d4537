<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pool;

use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;

/** Temporary failures to connect: the server is starting, stopping, unreachable or out of connections. */
final class TransientFailures
{
    /** too_many_connections, admin_shutdown, crash_shutdown, cannot_connect_now, and two connection exceptions (08). */
    private const SQL_STATES = ['53300', '57P01', '57P02', '57P03', '08001', '08006'];

    /** Matches PgBouncer's messages for an unreachable server. SQLSTATE 08P01 alone can mean a permanent failure. */
    private const POOLER_WITHOUT_SERVER = '~: (?:server login has been failing|pgbouncer cannot connect to server'
        . '|client_login_timeout \(server down\))~';

    /** Matches PgBouncer's message for too many connections. It can have SQLSTATE 08P01 instead of 53300. */
    private const POOLER_FULL = '~: no more connections allowed~';

    public static function includes(\Throwable $failure): bool
    {
        return $failure instanceof ConnectionFailedException && (
            \in_array($failure->sqlState, self::SQL_STATES, true)
            || $failure->sqlState === '08P01' && preg_match(self::POOLER_FULL, $failure->getMessage()) === 1
            || self::isUnreachable($failure)
        );
    }

    /** Returns whether no server sent an SQLSTATE and a retry may help, or PgBouncer could not reach PostgreSQL. */
    public static function isUnreachable(\Throwable $failure): bool
    {
        if (!$failure instanceof ConnectionFailedException) {
            return false;
        }
        $cause = $failure->getPrevious();

        return $failure->sqlState === null
            ? !$cause instanceof AttemptFailedException || !$cause->isPermanent
            : $failure->sqlState === '08P01' && preg_match(self::POOLER_WITHOUT_SERVER, $failure->getMessage()) === 1;
    }
}
