<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\ProtocolException;

/** Wrappers around functions of ext-pgsql. */
final class Libpq
{
    /** @return resource the connection's socket as a stream; use it only to wait while the connection is open */
    public static function socket(Connection $connection)
    {
        $socket = pg_socket($connection);

        return $socket !== false ? $socket : throw new \LogicException('ext-pgsql returned no socket');
    }

    /** Makes error texts contain the SQLSTATE, for functions that return only a text. */
    public static function showSqlStates(Connection $connection): void
    {
        pg_set_error_verbosity($connection, \PGSQL_ERRORS_VERBOSE);
    }

    /** Returns the transaction status: I, T or E. */
    public static function status(Connection $connection): string
    {
        return match (pg_transaction_status($connection)) {
            \PGSQL_TRANSACTION_INTRANS => 'T',
            \PGSQL_TRANSACTION_INERROR => 'E',
            default => 'I',
        };
    }

    /** Returns an exception for a call that libpq refused, because it is not allowed in the connection's state. */
    public static function failure(Connection $connection): \LogicException
    {
        return new \LogicException('libpq: ' . strtok(pg_last_error($connection), "\n"));
    }

    /** Returns an exception for a statement without a result and without an error. */
    public static function noResult(): ProtocolException
    {
        return ProtocolException::malformed('libpq returned neither a result nor an error');
    }

    /** Whether PHP can send any data of a COPY, and abort a COPY. That needs PHP 8.4. */
    public static function hasCopyFunctions(): bool
    {
        return self::function('pg_put_copy_data') !== null;
    }

    /**
     * Sends data of a COPY over a non-blocking connection. libpq buffers the bytes that the socket does not accept.
     *
     * @return bool whether libpq accepted the data
     */
    public static function putData(Connection $connection, #[\SensitiveParameter] string $data): bool
    {
        $put = self::function('pg_put_copy_data');

        return $put === null ? @pg_put_line($connection, $data) : @$put($connection, $data) === 1;
    }

    /**
     * Ends the data of a COPY, if {@see hasCopyFunctions()} returns true.
     *
     * @param string|null $abortReason error message to abort the COPY with; null to store the rows
     */
    public static function endData(Connection $connection, ?string $abortReason): bool
    {
        $end = self::function('pg_put_copy_end');

        return $end !== null && @$end($connection, $abortReason) === 1;
    }

    /**
     * Ends the data of a COPY, if {@see hasCopyFunctions()} returns false. Afterwards libpq reads answers again. The
     * connection must be non-blocking, and the socket must be writable. pg_end_copy() also returns false if the answer
     * has not arrived. If the server refused the data while the socket was full, libpq has read the error before, and
     * only the error's text is available.
     *
     * @see https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-protocol3.c pqEndcopy3
     *
     * @return ServerError|null the error that libpq had read before, if any
     */
    public static function endCopy(Connection $connection): ?ServerError
    {
        return @pg_end_copy($connection) ? null : PgsqlErrors::in(pg_last_error($connection));
    }

    /**
     * Closes a connection without waiting. pg_close(), like the end of a PHP script, waits until the server has
     * completed the current statement, and during a COPY it waits forever. Therefore the socket is shut down first.
     *
     * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c pgsql_link_free
     *
     * @param resource|null $socket stream of {@see socket()}
     */
    public static function close(Connection $connection, $socket = null): void
    {
        if (
            pg_connection_status($connection) === \PGSQL_CONNECTION_OK
            && pg_transaction_status($connection) === \PGSQL_TRANSACTION_ACTIVE
        ) {
            $raw = @socket_import_stream($socket ?? self::socket($connection));
            if ($raw !== false) {
                @socket_shutdown($raw);
            }
            // Makes libpq notice the shutdown.
            while (pg_connection_status($connection) === \PGSQL_CONNECTION_OK && @pg_consume_input($connection)) {
                continue;
            }
        }
        pg_close($connection);
    }

    private static function function(string $name): ?callable
    {
        return \is_callable($name) ? $name : null;
    }
}
