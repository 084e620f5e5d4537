<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Aircraft\Migrations;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Postgres\Cluster;

/** Tests with a running PostgreSQL that refuses connections or changes, or is too slow. */
#[RequiresPhpExtension('pcntl')]
final class DatabaseRefusalsTest extends ServeTestCase
{
    use RunsAircraft;

    private const ONE = '{"number":"D-AIMA","title":"Airbus A380","serial_number":"38"}';

    public function testWithoutAConnectionLeftRequestsAreToldToComeBackAndThenAreServed(): void
    {
        $settings = ['max_connections' => 6, 'superuser_reserved_connections' => 0, 'max_wal_senders' => 0];
        $cluster = Cluster::start($settings);
        $first = PostgresConnection::connect($cluster->dsn());
        (new Migrations($first))->run();
        $environment = ['DATABASE_URL' => $cluster->dsn(), 'AIRCRAFT_WAIT' => '1'];
        $this->serve($this->aircraft($environment), ['--processes', '1']);
        $others = [$first];
        try {
            while (\count($others) < 10) {
                $others[] = PostgresConnection::connect($cluster->dsn());
            }
        } catch (ConnectionFailedException) {
            // The server has no connections left.
        }
        $clients = array_map(
            fn(int $i)
                => $this->client()->request('POST', '/aircraft', "Content-Type: application/json\r\n", self::ONE),
            range(1, 5),
        );
        foreach ($clients as $client) {
            self::assertRefused(
                'No connection to the database became free in time; nothing was changed',
                $client->response(),
            );
        }
        array_map(static fn(PostgresConnection $connection) => $connection->close(), $others);
        Eventually::holds(fn(): bool => $this->get('/aircraft')->status === 200, 'it has found out', 20);

        self::assertSame(
            201,
            $clients[0]->request(
                'POST',
                '/aircraft',
                "Content-Type: application/json\r\n",
                self::ONE,
            )->response()->status,
        );
        $cluster->stop();
    }

    public function testADatabaseThatRefusesTheLoginIsReportedAsUnavailable(): void
    {
        $dsn = Cluster::shared()->dsn(dbname: $this->databaseName, user: 'no_such_role');
        $this->serve($this->aircraft(['DATABASE_URL' => $dsn]), ['--processes', '1']);

        self::assertRefused('The database can not be reached; nothing was changed', $this->get('/aircraft'));
    }

    public function testADatabaseThatTakesNoChangesIsReadAndSaysSo(): void
    {
        $this->seed(1);
        $this->database()->execute("ALTER DATABASE {$this->databaseName} SET default_transaction_read_only = on");
        $this->serve($this->aircraft(), ['--processes', '1']);
        $why = 'The database accepts no changes at present; nothing was changed';
        $client = $this->client();

        self::assertRefused(
            $why,
            $client->request('POST', '/aircraft', "Content-Type: application/json\r\n", self::ONE)->response(),
        );
        self::assertRefused(
            $why,
            $client->request(
                'PUT',
                '/aircraft/S-000000',
                "Content-Type: application/json\r\n",
                str_replace('D-AIMA', 'S-000000', self::ONE),
            )->response(),
        );
        self::assertRefused($why, $client->request('DELETE', '/aircraft/S-000000')->response());
        self::assertRefused(
            $why,
            $client->request(
                'POST',
                '/aircraft/import',
                "Content-Type: text/csv\r\n",
                "number,title,serial_number,assembly_date\nD-AIMA,Airbus A380,38,\n",
            )->response(),
        );
        self::assertSame(200, $client->get('/aircraft/S-000000')->response()->status);
    }

    public function testAStatementThatTakesTooLongIsStoppedAndSaysSo(): void
    {
        $this->database()->execute("ALTER DATABASE {$this->databaseName} SET statement_timeout = '50ms'");
        $this->serve($this->aircraft(), ['--processes', '1']);

        foreach (['/sleep', '/sleep?n=3'] as $target) {
            self::assertRefused(
                'The database took too long; nothing was changed',
                $this->client()->get($target)->response(),
            );
        }
        self::assertSame(200, $this->get('/aircraft')->status);
        self::assertFalse($this->logged(' error '), (string) $this->serve?->getErrorOutput());
    }

    /** @return iterable<string, array{bool}> */
    public static function waysToLeave(): iterable
    {
        yield 'closes' => [false];
        yield 'resets' => [true];
    }

    #[DataProvider('waysToLeave')]
    public function testStatementsOfAClientThatLeavesAreCancelled(bool $resets): void
    {
        $this->serve($this->aircraft(['AIRCRAFT_CONNECTIONS' => '10']), ['--processes', '1']);
        $sleeping = fn(): int => $this->underWay("query LIKE '%pg_sleep%'");
        $client = $this->client()->get('/sleep?n=100'); // 100 sleeps of 1 s on ten connections: ten seconds
        Eventually::holds(static fn(): bool => $sleeping() === 10, 'ten sleep');
        $resets ? $client->reset() : $client->close();

        Eventually::holds(static fn(): bool => $sleeping() === 0, 'none does', 4);
        self::assertSame(200, $this->get('/aircraft')->status);
        self::assertSame(0, $sleeping(), 'no more begin');
    }

    public function testWhoGetsNoConnectionInTimeIsToldSo(): void
    {
        $this->serve($this->aircraft(['AIRCRAFT_CONNECTIONS' => '1', 'AIRCRAFT_WAIT' => '1']), ['--processes', '1']);
        $client = $this->client()->get('/sleep?n=5');

        self::assertRefused(
            'No connection to the database became free in time; nothing was changed',
            $client->response(),
        );
    }

    private static function assertRefused(string $why, ReceivedResponse $response): void
    {
        self::assertSame(503, $response->status, "{$response->head}\n{$response->body}");
        self::assertSame(
            ['application/problem+json', '1'],
            [$response->header('content-type'), $response->header('retry-after')],
        );
        self::assertSame(['title' => 'Service Unavailable', 'status' => 503, 'detail' => $why], $response->json());
    }
}
