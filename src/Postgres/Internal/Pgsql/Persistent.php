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
     * Blocks. In two steps: a connection that is found again tells notices to an object that is gone until PHP has given it
     * to another, and by then a statement has been sent over it. So it is found once while notices are ignored.
     *
     * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c php_pgsql_do_connect
     *
     * @return array{Connection|false, string} and why not
     */
    public function connect(): array
    {
        $ignores = ini_set('pgsql.ignore_notice', '1');
        try {
            [$first, $warning] = Warnings::of(fn() => pg_pconnect($this->conninfo));
        } finally {
            ini_set('pgsql.ignore_notice', (string) $ignores);
        }

        return $first === false ? [false, $warning] : Warnings::of(fn() => pg_pconnect($this->conninfo));
    }

    /** @return array<string, mixed> without the password */
    public function __debugInfo(): array
    {
        return [];
    }
}
