<?php

declare(strict_types=1);

namespace Spindle\Tests\Aircraft;

use Aircraft\Fleet;
use Aircraft\Migrations;
use Aircraft\Transfer;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Spindle\Postgres\PostgresConnection;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;

/** A database for one test with the tables of the aircraft application, and PHP code that starts the application. */
trait RunsAircraft
{
    use AircraftCode {
        aircraft as private codeOf;
    }
    use UsesCluster;

    private string $databaseName = '';

    private ?PostgresConnection $database = null;

    #[Before]
    protected function makeDatabase(): void
    {
        $this->databaseName = Cluster::newDatabase();
        $this->database = PostgresConnection::connect($this->dsn());
        (new Migrations($this->database))->run();
    }

    /** Runs after the hooks that stop servers. */
    #[After(1)]
    protected function dropDatabase(): void
    {
        $this->database?->close();
        $this->database = null;
        Cluster::ask("DROP DATABASE {$this->databaseName} WITH (FORCE)");
    }

    private function dsn(): string
    {
        return Cluster::shared()->dsn(dbname: $this->databaseName);
    }

    /** Returns a connection for checks of the tables, independent of the application. */
    private function database(): PostgresConnection
    {
        \assert($this->database !== null);

        return $this->database;
    }

    /** @param string $condition SQL condition on active statements of other sessions of the database */
    private function underWay(string $condition): int
    {
        $count = $this->database()
            ->query(
                'SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
                . " AND state = 'active' AND {$condition}",
            )
            ->value();
        \assert(\is_int($count));

        return $count;
    }

    private function seed(int $count): void
    {
        (new Transfer($this->database()))->import(Fleet::csv($count));
    }

    /**
     * Returns the PHP code of an app.php, for `spindle serve` and for a front controller. It uses the test's database,
     * unless `$environment` has another one.
     *
     * @param array<string, string> $environment
     */
    private function aircraft(array $environment = []): string
    {
        return $this->codeOf($environment + ['DATABASE_URL' => $this->dsn()]);
    }
}
