<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PgSql\Connection;
use Spindle\Tests\Postgres\Cluster;

/** Queries the shared cluster over one connection that stays open for all tests of a class. */
final class Observer
{
    private static ?Connection $connection = null;

    /** Connects before the tests, so that they do not count the connection as one that they left open. */
    public static function start(): void
    {
        $connection = pg_connect(Cluster::shared()->dsn(), \PGSQL_CONNECT_FORCE_NEW);
        self::$connection = $connection !== false
            ? $connection
            : throw new \RuntimeException('The cluster does not answer');
    }

    public static function stop(): void
    {
        if (self::$connection !== null) {
            pg_close(self::$connection);
            self::$connection = null;
        }
    }

    /**
     * Returns the server's answer to a statement, or to the last one of several.
     *
     * @return list<array<array-key, string|null>> rows by column
     */
    public static function ask(string $sql): array
    {
        $connection = self::$connection ?? throw new \LogicException('The observer is not connected');
        $result = pg_query($connection, $sql);
        /** @var list<array<array-key, string|null>> $rows */
        $rows = $result === false ? throw new \RuntimeException(pg_last_error($connection)) : pg_fetch_all($result);

        return $rows;
    }
}
