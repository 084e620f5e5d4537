<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use Spindle\Internal\Warnings;

/**
 * A connection that PHP keeps for whoever connects with the same string. As long as somebody has it nobody else in this process gets
 * it: the string is another one then, by spaces at its end.
 */
final class Persistent
{
    /** @var array<string, true> that are taken */
    private static array $taken = [];

    private function __construct(#[\SensitiveParameter] private readonly string $conninfo) {}

    /** @param float $seconds to connect within */
    public static function take(#[\SensitiveParameter] string $conninfo, float $seconds): self
    {
        // libpq knows no limit below two.
        $conninfo .= is_finite($seconds) ? \sprintf("connect_timeout='%d'", max(2, ceil($seconds))) : '';
        while (isset(self::$taken[$conninfo])) {
            $conninfo .= ' ';
        }
        self::$taken[$conninfo] = true;

        return new self($conninfo);
    }

    public function give(): void
    {
        unset(self::$taken[$this->conninfo]);
    }

    /**
     * Blocks. PHP has a connection tell notices to an object that a request ends with, and the connection does not; and it sends a
     * statement over one that is found again before it names another object. So notices are ignored in a request, from now on to its
     * end, that has such a connection. One that is new is found again at once, without that, or it would write them to standard error.
     *
     * PHP also frees a connection that was lost and can't be had anew, whoever has an object of it: there must be none by then.
     *
     * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c php_pgsql_do_connect
     *
     * @return array{Connection|false, string} and why not
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

    /** How many PHP keeps in this process, which it tells nowhere else. */
    private static function kept(): int
    {
        ob_start();
        (new \ReflectionExtension('pgsql'))->info();

        return preg_match('/Active Persistent Links\D+(\d+)/', (string) ob_get_clean(), $links) === 1 ? (int) $links[1] : 0;
    }

    /** @return array<string, mixed> without the password */
    public function __debugInfo(): array
    {
        return [];
    }
}
