<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\ProtocolException;

/** Functions of ext-pgsql that need more than one call. */
final class Libpq
{
    /**
     * Returns the connection's descriptor as a stream. It only serves to wait while the connection is open.
     *
     * @return resource
     */
    public static function socket(Connection $connection)
    {
        $socket = pg_socket($connection);

        return $socket !== false ? $socket : throw new \LogicException('ext-pgsql returned no socket');
    }

    /** Adds SQLSTATEs to error texts, for functions that return nothing else. */
    public static function showCodes(Connection $connection): void
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

    /** Returns an error for a call in the wrong order, which libpq refused. The connection is unchanged. */
    public static function failure(Connection $connection): \LogicException
    {
        return new \LogicException('libpq: ' . strtok(pg_last_error($connection), "\n"));
    }

    public static function noResult(): ProtocolException
    {
        return ProtocolException::malformed('libpq returned neither a result nor an error');
    }

    /** Whether PHP can send the data of a COPY unchanged and abort a COPY: since 8.4. */
    public static function canCopy(): bool
    {
        return self::function('pg_put_copy_data') !== null;
    }

    /** Sends data of a COPY over a non-blocking connection. libpq keeps what the socket does not accept. */
    public static function putData(Connection $connection, #[\SensitiveParameter] string $data): bool
    {
        $put = self::function('pg_put_copy_data');

        return $put === null ? @pg_put_line($connection, $data) : @$put($connection, $data) === 1;
    }

    /**
     * Ends the data of a COPY. Only where {@see canCopy()} is true.
     *
     * @param string|null $refusal message with which to abort the COPY; null when the data are complete
     */
    public static function endData(Connection $connection, ?string $refusal): bool
    {
        $end = self::function('pg_put_copy_end');

        return $end !== null && @$end($connection, $refusal) === 1;
    }

    /**
     * Ends the data of a COPY where {@see canCopy()} is false, after which libpq reads answers again.
     *
     * The connection must be non-blocking, and the socket must accept some bytes.
     *
     * pg_end_copy() gives up when the answer has not arrived. An answer that libpq has already read is lost, except for
     * its text. That happens when the server refused the data while the socket was full.
     *
     * @see https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-protocol3.c pqEndcopy3
     *
     * @return ServerError|null an answer that was lost
     */
    public static function endCopy(Connection $connection): ?ServerError
    {
        return @pg_end_copy($connection) ? null : PgsqlErrors::in(pg_last_error($connection));
    }

    /**
     * Closes a connection at once. pg_close() and the end of a script wait until the server has completed the current
     * statement, and forever during a COPY. Therefore the socket is shut down first.
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
