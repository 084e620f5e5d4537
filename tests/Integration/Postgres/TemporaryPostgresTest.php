<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Testing\TemporaryPostgresException;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsWithItsOwner;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

final class TemporaryPostgresTest extends TidyTestCase
{
    use CatchesThrown;
    use EndsWithItsOwner;

    /** Microseconds after which a start is still in progress. */
    private const MICROSECONDS_INTO_START = 40_000;

    public function testItAnswersOnItsUnixSocketAndWithThePasswordOnTcp(): void
    {
        $cluster = TemporaryPostgres::start();
        $address = 'SELECT host(inet_client_addr()) AS address, current_user AS name, current_database() AS database';

        self::assertSame(
            [['address' => null, 'name' => 'postgres', 'database' => 'postgres']],
            Cluster::ask($address, $cluster->dsn()),
        );
        self::assertSame('127.0.0.1', Cluster::ask($address, $cluster->tcpDsn())[0]['address'] ?? null);
        self::assertFalse(@pg_connect($cluster->tcpDsn(password: 'wrong'), \PGSQL_CONNECT_FORCE_NEW));
        self::assertStringContainsString('password authentication failed for user "postgres"', $cluster->log());
        $cluster->stop();
        self::assertNothingLeft($cluster->host);
    }

    public function testItsSettingsApplyWhateverTheirTypes(): void
    {
        $cluster = TemporaryPostgres::start([
            'max_connections' => 7,
            'superuser_reserved_connections' => 2,
            'autovacuum' => false,
            'seq_page_cost' => 1.25,
            'application_name' => "it's a \\ test",
        ]);
        $settings = [];
        foreach ([
            'max_connections',
            'autovacuum',
            'seq_page_cost',
            'application_name',
            'timezone',
            'server_encoding',
        ] as $name) {
            $settings[] = Cluster::ask("SELECT current_setting('{$name}') AS value", $cluster->dsn())[0]['value']
                ?? null;
        }

        self::assertSame(['7', 'off', '1.25', "it's a \\ test", 'UTC', 'UTF8'], $settings);
        self::assertStringNotContainsString($cluster->password, $cluster->dsn());
    }

    public function testItsAddressIsItsOwnAffair(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('A temporary server chooses its own port');
        TemporaryPostgres::start(['port' => 5432]);
    }

    public function testASettingThatDoesNotFitInALineIsRefused(): void
    {
        foreach ([
            ['application_name' => "a\nb"],
            ['application_name' => "a\rb"],
            ['application_name' => "a\0b"],
            ["application_name\nport" => 1],
        ] as $settings) {
            $error = self::thrown(\ValueError::class, static fn() => TemporaryPostgres::start($settings));
            self::assertStringStartsWith(
                'The setting application_name contains a line break or a NUL byte',
                $error->getMessage(),
            );
        }
    }

    public function testASuperuserNameThatPostgresqlForbidsIsRefused(): void
    {
        foreach ([
            '',
            "o'brien",
            'a"b',
            'a\\b',
            '$a',
            "a\nb",
            'pg_boss',
            'public',
            'none',
            str_repeat('a', 64),
        ] as $user) {
            $error = self::thrown(\ValueError::class, static fn() => new TemporaryPostgresOptions(user: $user));
            self::assertSame(
                "The superuser of a temporary server can not be named \"{$user}\"",
                $error->getMessage(),
            );
        }
        $cluster = TemporaryPostgres::start([], new TemporaryPostgresOptions(user: 'Ärger mit-Namen'));
        self::assertSame([['name' => 'Ärger mit-Namen']], Cluster::ask('SELECT current_user AS name', $cluster->dsn()));
    }

    public function testItRequestsPasswordsAsConfiguredAndHasTheConfiguredUser(): void
    {
        $cluster = TemporaryPostgres::start(['password_encryption' => 'md5'], new TemporaryPostgresOptions(
            hba: ['local all plain password'],
            user: 'boss',
            initdb: ['--data-checksums'],
        ));
        Cluster::ask("CREATE ROLE plain LOGIN PASSWORD 'secret'", $cluster->dsn());

        self::assertFalse(@pg_connect($cluster->dsn(user: 'plain', password: 'wrong'), \PGSQL_CONNECT_FORCE_NEW));
        self::assertSame(
            [['name' => 'plain']],
            Cluster::ask('SELECT current_user AS name', $cluster->dsn(user: 'plain', password: 'secret')),
        );
        self::assertSame(
            [['name' => 'boss', 'sums' => 'on']],
            Cluster::ask("SELECT current_user AS name, current_setting('data_checksums') AS sums", $cluster->tcpDsn()),
        );
    }

    public function testItTalksTlsWithTheCertificateThatItIsGiven(): void
    {
        $authority = new Certificates($this->path());
        [$certificate, $key] = $authority->forServer('127.0.0.1');
        $cluster = Cluster::start([], new TemporaryPostgresOptions(
            hba: ['hostssl all postgres 127.0.0.1/32 cert'],
            certificate: $certificate,
            key: $key,
            caFile: $authority->authority,
        ));
        [$client, $clientKey] = $authority->forClient('postgres');

        $tls = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
        $dsn = $cluster->tcpDsn(
            sslmode: 'verify-full',
            sslrootcert: $authority->authority,
            sslcert: $client,
            sslkey: $clientKey,
        );
        self::assertSame([['ssl' => 't']], Cluster::ask($tls, $dsn));
        $stranger = new Certificates($this->path(), 'A stranger');
        self::assertFalse(
            @pg_connect(
                $cluster->tcpDsn(sslmode: 'verify-full', sslrootcert: $stranger->authority),
                \PGSQL_CONNECT_FORCE_NEW,
            ),
        );
        [$client, $clientKey] = $stranger->forClient('postgres');
        self::assertFalse(
            @pg_connect(
                $cluster->tcpDsn(sslmode: 'require', sslcert: $client, sslkey: $clientKey),
                \PGSQL_CONNECT_FORCE_NEW,
            ),
        );
    }

    public function testARestartKeepsDataAndAddressesAndDisconnectsClients(): void
    {
        $cluster = self::startOne();
        Cluster::ask('CREATE TABLE kept AS SELECT 1 AS number', $cluster->dsn());
        $client = pg_connect($cluster->dsn(), \PGSQL_CONNECT_FORCE_NEW);
        self::assertNotFalse($client);
        $pid = $cluster->postmasterPid();

        $cluster->restart();

        self::assertNotSame($pid, $cluster->postmasterPid());
        self::assertSame([['number' => '1']], Cluster::ask('SELECT number FROM kept', $cluster->tcpDsn()));
        self::assertFalse(@pg_query($client, 'SELECT 1'));
        self::assertStringContainsString('terminating connection due to administrator command', pg_last_error($client));
    }

    public function testAKilledServerKeepsWhatWasCommittedAndStartsAgain(): void
    {
        $cluster = self::startOne();
        Cluster::ask('CREATE TABLE kept AS SELECT 1 AS number', $cluster->dsn());
        $pid = (int) $cluster->postmasterPid();
        self::assertTrue(Processes::isAlive($pid));

        $cluster->kill();

        self::assertFalse(Processes::isAlive($pid));
        self::assertNull($cluster->postmasterPid());
        self::assertFalse(@pg_connect($cluster->tcpDsn(), \PGSQL_CONNECT_FORCE_NEW));
        $cluster->restart();
        self::assertSame([['number' => '1']], Cluster::ask('SELECT number FROM kept', $cluster->dsn()));
        $cluster->kill();
        $cluster->stop();
        self::assertNothingLeft($cluster->host);
    }

    public function testAServerThatWasKilledStartsAgainAlsoWhileOneOfItsChildrenIsBusy(): void
    {
        $cluster = self::startOne();
        $client = pg_connect($cluster->dsn(), \PGSQL_CONNECT_FORCE_NEW);
        self::assertNotFalse($client);
        $pid = pg_get_pid($client);
        pg_send_query($client, "DO 'BEGIN LOOP END LOOP; END'");
        Eventually::holds(static fn(): bool => Processes::state($pid) === 'R', 'the server runs the loop');

        $cluster->kill();
        self::assertTrue(Processes::isAlive($pid));
        $cluster->restart();

        self::assertFalse(Processes::isAlive($pid));
        self::assertSame([['one' => '1']], Cluster::ask('SELECT 1 AS one', $cluster->dsn()));
    }

    public function testAVersionThatIsNotInstalledIsMissedByItsPackage(): void
    {
        $this->expectException(TemporaryPostgresException::class);
        $this->expectExceptionMessage('No PostgreSQL 8 server is installed');
        $this->expectExceptionMessage(
            'On Debian, install the package postgresql-8. Or set their directory: '
                . 'TemporaryPostgresOptions(binaries: ...)',
        );
        TemporaryPostgres::start([], new TemporaryPostgresOptions(version: 8));
    }

    public function testBinariesThatAreNotThereAreMissedByTheirDirectory(): void
    {
        $this->expectException(TemporaryPostgresException::class);
        $this->expectExceptionMessage(
            "initdb and postgres are in none of {$this->path()}. On Debian, install the package postgresql.",
        );
        TemporaryPostgres::start([], new TemporaryPostgresOptions(binaries: $this->path()));
    }

    public function testTheOutputOfAFailedInitdbIsReported(): void
    {
        $this->expectException(TemporaryPostgresException::class);
        $this->expectExceptionMessageMatches('/^initdb failed with exit code 1:.*unrecognized option \'--nonsense\'/s');
        TemporaryPostgres::start([], new TemporaryPostgresOptions(initdb: ['--nonsense']));
    }

    public function testTheLogOfAServerThatDoesNotStartIsReported(): void
    {
        $failure = self::thrown(TemporaryPostgresException::class, static fn() => Cluster::start(['nonsense' => true]));
        self::assertStringStartsWith(
            'The PostgreSQL server ended before it was ready; the end of its log:',
            $failure->getMessage(),
        );
        self::assertStringContainsString('unrecognized configuration parameter "nonsense"', $failure->output);
    }

    private static function called(): string
    {
        return 'server';
    }

    /** Uses data that initdb created once: a cluster behaves the same whatever the source of its data is. */
    private static function startOne(?float $timeout = null): TemporaryPostgres
    {
        return Cluster::start([], $timeout === null ? null : new TemporaryPostgresOptions(timeout: $timeout));
    }

    private static function startFromNothing(): TemporaryPostgres
    {
        return TemporaryPostgres::start();
    }
}
