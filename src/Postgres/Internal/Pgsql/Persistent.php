<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use Spindle\Internal\Warnings;

/**
 * A connection that PHP keeps for later requests with the same connection string. While it is in use, other callers in
 * this process get another string, with spaces at its end, and so another connection.
 */
final class Persistent
{
    /** @var array<string, true> connection strings in use */
    private static array $inUse = [];

    private function __construct(#[\SensitiveParameter] private readonly string $conninfo) {}

    /** @param float $seconds limit for connecting */
    public static function acquire(#[\SensitiveParameter] string $conninfo, float $seconds): self
    {
        // The lowest limit of libpq is two seconds.
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
     * Connects; blocks.
     *
     * PHP attaches a notice handler to a persistent connection, and the handler refers to an object that ends with the
     * request. PHP also sends a statement over a reused connection before it replaces the handler. So notices are
     * ignored from now on until the end of the request.
     *
     * A new connection is requested again with notices enabled, or libpq would write them to standard error.
     *
     * PHP frees a lost connection that it can't replace, even if objects refer to it, so there must be none.
     *
     * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c php_pgsql_do_connect
     *
     * @return array{Connection|false, string} the connection, and the warning when there is none
     */
    public function connect(): array
    {
        ini_set('pgsql.ignore_notice', '1');
        $kept = self::kept();
        [$connection, $warning] = Warnings::of(fn() => pg_pconnect($this->conninfo));
        if ($connection !== false && pg_connection_status($connection) !== \PGSQL_CONNECTION_OK) {
            $warning = (string) strtok(pg_last_error($connection), "\n");
            pg_close($connection);
            $connection = false;
        }
        if ($connection === false || self::kept() === $kept) {
            return [$connection, $warning];
        }
        ini_set('pgsql.ignore_notice', '0');
        try {
            return Warnings::of(fn() => pg_pconnect($this->conninfo));
        } finally {
            ini_set('pgsql.ignore_notice', '1');
        }
    }

    /** Returns how many connections PHP keeps in this process. Only phpinfo() shows that number. */
    private static function kept(): int
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
