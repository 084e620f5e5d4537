<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\ProtocolException;

/** Functions of ext-pgsql, where there is more to them than a call. */
final class Libpq
{
    /**
     * The connection's descriptor as a stream, which is good for nothing but to wait for it, and only as long as the connection is open.
     *
     * @return resource
     */
    public static function socket(Connection $connection)
    {
        $socket = pg_socket($connection);

        return $socket !== false ? $socket : throw new \LogicException('ext-pgsql gives no socket');
    }

    /** Has the codes of errors in texts, for where there is nothing else. */
    public static function showCodes(Connection $connection): void
    {
        pg_set_error_verbosity($connection, \PGSQL_ERRORS_VERBOSE);
    }

    /** I, T or E. */
    public static function status(Connection $connection): string
    {
        return match (pg_transaction_status($connection)) {
            \PGSQL_TRANSACTION_INTRANS => 'T',
            \PGSQL_TRANSACTION_INERROR => 'E',
            default => 'I',
        };
    }

    /** libpq would not do it, and the connection is as it was: it was called in the wrong order. */
    public static function failure(Connection $connection): \LogicException
    {
        return new \LogicException('libpq: ' . strtok(pg_last_error($connection), "\n"));
    }

    public static function noResult(): ProtocolException
    {
        return ProtocolException::malformed('there is neither a result nor an error');
    }

    /** Whether PHP has the functions that send the data of a COPY as they are, and give one up: since 8.4. */
    public static function canCopy(): bool
    {
        return self::function('pg_put_copy_data') !== null;
    }

    /** On a connection that does not block; what the socket does not take is kept. */
    public static function putData(Connection $connection, #[\SensitiveParameter] string $data): bool
    {
        $put = self::function('pg_put_copy_data');

        return $put === null ? @pg_put_line($connection, $data) : @$put($connection, $data) === 1;
    }

    /**
     * Where {@see canCopy()}.
     *
     * @param string|null $refusal null when the data are complete
     */
    public static function endData(Connection $connection, ?string $refusal): bool
    {
        $end = self::function('pg_put_copy_end');

        return $end !== null && @$end($connection, $refusal) === 1;
    }

    /**
     * Where not: tells the server that a COPY's data are complete; libpq returns to answers. To be called when the connection does not block and
     * the socket takes some bytes.
     *
     * pg_end_copy() means to wait for the answer, and gives up when there is none yet. When there is one already that libpq has read,
     * which may be when the server refused the data and the socket was full meanwhile, it is lost but for its text.
     *
     * @see https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-protocol3.c pqEndcopy3
     *
     * @return ServerError|null an answer that was lost
     */
    public static function endCopy(Connection $connection): ?ServerError
    {
        return @pg_end_copy($connection) ? null : Errors::in(pg_last_error($connection));
    }

    /**
     * Closes it at once. pg_close() by itself waits until the server has done what is under way, and so does the end of a script; during
     * a COPY it waits for ever. Therefore the socket is shut down first.
     *
     * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c pgsql_link_free
     *
     * @param resource|null $socket of {@see socket()}
     */
    public static function close(Connection $connection, $socket = null): void
    {
        if (pg_connection_status($connection) === \PGSQL_CONNECTION_OK && pg_transaction_status($connection) === \PGSQL_TRANSACTION_ACTIVE) {
            $raw = @socket_import_stream($socket ?? self::socket($connection));
            if ($raw !== false) {
                @socket_shutdown($raw);
            }
            // So that libpq notices.
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
