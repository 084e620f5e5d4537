<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use PgSql\Connection;

/** What all that is written by hand on ext-pgsql begins with. */
final class Pgsql
{
    public static function connect(Target $target): Connection
    {
        $connection = pg_connect($target->dsn(), \PGSQL_CONNECT_FORCE_NEW);

        return $connection !== false ? $connection : throw new \RuntimeException('ext-pgsql can not connect');
    }

    /**
     * The connection's socket, whose functions do not wait any more.
     *
     * @return resource
     */
    public static function nonBlockingSocket(Connection $connection)
    {
        $socket = pg_socket($connection);
        \assert($socket !== false);
        // True is what makes it non-blocking: ext-pgsql hands the flag to PQsetnonblocking() as it is.
        // https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c, php_pgsql_fd_set_option()
        stream_set_blocking($socket, true);

        return $socket;
    }
}
