<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use PgSql\Connection;

/** Connections of the clients that are written by hand on ext-pgsql. */
final class Pgsql
{
    public static function connect(Target $target): Connection
    {
        $connection = pg_connect($target->dsn(), \PGSQL_CONNECT_FORCE_NEW);

        return $connection !== false ? $connection : throw new \RuntimeException('ext-pgsql can not connect');
    }

    /**
     * Makes the connection's functions non-blocking, and returns its socket.
     *
     * @return resource
     */
    public static function nonBlockingSocket(Connection $connection)
    {
        $socket = pg_socket($connection);
        \assert($socket !== false);
        // True makes it non-blocking: ext-pgsql passes the flag to PQsetnonblocking() unchanged.
        // https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c, php_pgsql_fd_set_option()
        stream_set_blocking($socket, true);

        return $socket;
    }
}
