<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Spindle\Postgres\Testing\Internal\DataDirectory;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;

/**
 * The PostgreSQL cluster that all tests of a run share. It starts when the first test needs it and ends with the
 * process.
 *
 * A test gives unique names to what it creates in the cluster, or uses a new database. A test that ends the server or
 * needs other settings starts its own cluster by {@see start()}. Test classes with the shared cluster use
 * {@see UsesCluster}.
 */
final class Cluster
{
    private static ?TemporaryPostgres $shared = null;

    public static function shared(): TemporaryPostgres
    {
        return self::$shared ??= self::start([
            'max_connections' => 200,
            'max_prepared_transactions' => 10,
            'autovacuum' => false,
        ]);
    }

    /**
     * Starts a cluster for one test, like TemporaryPostgres::start(), but from a copy of data that initdb made once.
     *
     * @param array<string, string|int|float|bool> $settings of postgresql.conf
     */
    public static function start(array $settings = [], ?TemporaryPostgresOptions $options = null): TemporaryPostgres
    {
        $start = static fn(): TemporaryPostgres => TemporaryPostgres::start($settings, $options);

        return DataDirectory::from(new PreparedData(), $start);
    }

    /**
     * Returns the result of one statement over a new ext-pgsql connection, without the code under test.
     *
     * @return list<array<array-key, string|null>> rows by column
     */
    public static function ask(string $sql, ?string $dsn = null): array
    {
        $connection = pg_connect($dsn ?? self::shared()->dsn(), \PGSQL_CONNECT_FORCE_NEW);
        if ($connection === false) {
            throw new \RuntimeException('The cluster does not answer');
        }
        try {
            $result = pg_query($connection, $sql);

            /** @var list<array<array-key, string|null>> $rows */
            $rows = $result === false ? throw new \RuntimeException(pg_last_error($connection)) : pg_fetch_all($result);

            return $rows;
        } finally {
            pg_close($connection);
        }
    }

    /** @return string the name of a new and empty database */
    public static function newDatabase(): string
    {
        $name = 'test_' . bin2hex(random_bytes(6));
        self::ask("CREATE DATABASE {$name}");

        return $name;
    }
}
