<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;

/** Tests of a connection: those of a link, and those of connections only. */
abstract class ConnectionContract extends LinkContract
{
    use Contract\RunsOnEveryLink;
    use Contract\SendsStatements;
    use Contract\CarriesTypes;
    use Contract\PreparesStatements;
    use Contract\SharesRoundTrips;
    use Contract\SharesAConnection;
    use Contract\IsolatesTransactions;
    use Contract\CancelsOnTheServer;
    use Contract\KeepsDeadlines;
    use Contract\KeepsMeaning;
    use Contract\Listens;
    use Contract\EndsConnections;
    use Contract\LogsSteps;
    use Contract\KeepsSecrets;
    use Contract\LimitsSizes;
    use Contract\StaysSmall;

    protected function link(): PostgresLink
    {
        return $this->connect();
    }

    protected function listener(): PostgresConnection|PostgresPool
    {
        return $this->connect();
    }
}
