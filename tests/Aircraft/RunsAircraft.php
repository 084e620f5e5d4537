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

/** A database of the test's own, with the tables of the aircraft application, and the code that has it served. */
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

    /** After the servers are gone. */
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

    /** For looking into the tables from outside of the application. */
    private function database(): PostgresConnection
    {
        \assert($this->database !== null);

        return $this->database;
    }

    private function seed(int $count): void
    {
        (new Transfer($this->database()))->import(Fleet::csv($count));
    }

    /**
     * PHP code of an app.php, for `spindle serve` and for a front controller, with the test's database unless
     * $environment has another one.
     *
     * @param array<string, string> $environment
     */
    private function aircraft(array $environment = []): string
    {
        return $this->codeOf($environment + ['DATABASE_URL' => $this->dsn()]);
    }
}
