<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use Spindle\Internal\Warnings;

/**
 * A persistent connection: PHP keeps it open, and reuses it for later requests with the same connection string. While
 * it is in use, this class appends spaces to the same string of other callers, so that they get other connections.
 */
final class Persistent
{
    /** @var array<string, true> connection strings in use */
    private static array $inUse = [];

    private function __construct(#[\SensitiveParameter] private readonly string $conninfo) {}

    /** Reserves a connection string for one caller until {@see release()}. `$seconds` is the limit for connecting. */
    public static function acquire(#[\SensitiveParameter] string $conninfo, float $seconds): self
    {
        // libpq's minimum is two seconds.
        $conninfo .= is_finite($seconds) ? \sprintf("connect_timeout='%d'", max(2, ceil($seconds))) : '';
        while (isset(self::$inUse[$conninfo])) {
            $conninfo .= ' ';
        }
        self::$inUse[$conninfo] = true;

        return new self($conninfo);
    }

    public function release(): void
    {
        unset(self::$inUse[$this->conninfo]);
    }

    /**
     * Opens or reuses the connection. Blocks while PHP connects.
     *
     * PHP gives a persistent connection a notice handler, which refers to an object that is freed at the end of the
     * request. When PHP reuses the connection, it executes a statement before it replaces the handler, and a notice
     * would use the freed object. Therefore notices are disabled from now on until the end of the request.
     *
     * A new connection is requested twice. The second time, notices are enabled, so that PHP sets its handler. Without
     * a handler, libpq would write notices to standard error.
     *
     * If PHP can't replace a lost connection, it frees the connection even while objects refer to it. The caller must
     * not have such an object.
     *
     * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c php_pgsql_do_connect
     *
     * @return array{Connection|false, string} the connection, and the warning when there is none
     */
    public function connect(): array
    {
        ini_set('pgsql.ignore_notice', '1');
        $linksBefore = self::linkCount();
        [$connection, $warning] = Warnings::of(fn() => pg_pconnect($this->conninfo));
        if ($connection !== false && pg_connection_status($connection) !== \PGSQL_CONNECTION_OK) {
            $warning = (string) strtok(pg_last_error($connection), "\n");
            pg_close($connection);
            $connection = false;
        }
        if ($connection === false || self::linkCount() === $linksBefore) {
            return [$connection, $warning];
        }
        ini_set('pgsql.ignore_notice', '0');
        try {
            return Warnings::of(fn() => pg_pconnect($this->conninfo));
        } finally {
            ini_set('pgsql.ignore_notice', '1');
        }
    }

    /** Returns the number of persistent connections in this process. Only phpinfo() shows it. */
    private static function linkCount(): int
    {
        ob_start();
        (new \ReflectionExtension('pgsql'))->info();

        return preg_match('/Active Persistent Links\D+(\d+)/', (string) ob_get_clean(), $links) === 1
            ? (int) $links[1]
            : 0;
    }

    /** @return array<string, mixed> nothing, because the connection string contains the password */
    public function __debugInfo(): array
    {
        return [];
    }
}
