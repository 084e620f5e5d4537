<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Psr\Log\AbstractLogger;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ChannelBinding;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Connect\Connector;
use Spindle\Postgres\Internal\Connect\OpenedConnection;
use Spindle\Postgres\Internal\Connect\Scram;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\Async;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

final class ConnectTest extends TidyTestCase
{
    use OwnDirectory;
    use UsesCluster;

    public function testASessionIsReadyAndHasItsSettings(): void
    {
        $options = PostgresOptions::fromDsn(Cluster::shared()->dsn())->with(
            [
                'applicationName' => 'connect test',
                'statementTimeout' => 4.5,
                'settings' => ['search_path' => "a, 'b'", 'my.own' => '\\'],
            ],
        );
        $session = (new Connector($options))->connect();

        self::assertSame(
            [false, '', 'UTF8'],
            [$session->tls, $session->leftover, $session->parameters['client_encoding']],
        );
        self::assertSame(
            [['connect test', '4500ms', "a, 'b'", '\\', 'ISO, MDY', (string) $session->pid]],
            self::ask(
                $session,
                "select current_setting('application_name'), current_setting('statement_timeout'), "
                    . "current_setting('search_path'), current_setting('my.own'), current_setting('DateStyle'), "
                    . 'pg_backend_pid()',
            ),
        );
        if (version_compare($session->parameters['server_version'], '14', '>=')) {
            self::assertSame([['2s']], self::ask($session, 'show client_connection_check_interval'));
        }
        self::end($session);
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramDoesNotInheritTheConnection(): void
    {
        foreach ([Cluster::shared()->dsn(), Cluster::shared()->tcpDsn()] as $dsn) {
            $before = Processes::inheritedSockets();
            $session = (new Connector(PostgresOptions::fromDsn($dsn)))->connect();

            self::assertSame($before, Processes::inheritedSockets());
            self::end($session);
        }
    }

    public function testSettingsOfTheRoleAreKept(): void
    {
        $role = self::role("password 'x'");
        Cluster::ask("alter role {$role} set client_connection_check_interval = '7s'");
        $session = (new Connector(PostgresOptions::fromDsn(Cluster::shared()->dsn(user: $role))))->connect();

        self::assertSame([['7s']], self::ask($session, 'show client_connection_check_interval'));
        self::end($session);
    }

    public function testASettingThatIsRefusedIsReported(): void
    {
        $this->expectException(ConnectionFailedException::class);
        $this->expectExceptionMessage('unrecognized configuration parameter "nonsense" (42704)');
        (new Connector(
            PostgresOptions::fromDsn(Cluster::shared()->dsn())->with(['settings' => ['nonsense' => '1']]),
        ))->connect();
    }

    public function testAPasswordIsProvedOverTcp(): void
    {
        $options = PostgresOptions::fromDsn(Cluster::shared()->tcpDsn())->with(
            ['authentication' => [AuthenticationMethod::Scram]],
        );
        $session = (new Connector($options))->connect();

        self::assertSame('127.0.0.1', $session->endpoint->host->host);
        self::assertSame([['1']], self::ask($session, 'select 1'));
        self::end($session);
    }

    public function testAWrongPasswordIsReportedButNotShown(): void
    {
        try {
            $dsn = Cluster::shared()->tcpDsn(password: 'my wrong secret');
            (new Connector(PostgresOptions::fromDsn($dsn)))->connect();
            self::fail('It was taken');
        } catch (AuthenticationException $failure) {
            self::assertSame('28P01', $failure->sqlState);
            self::assertStringContainsString('password authentication failed', $failure->getMessage());
            self::assertStringContainsString('127.0.0.1:' . Cluster::shared()->port, $failure->getMessage());
            $trace = array_filter(
                $failure->getTrace(),
                static fn(array $frame): bool => ($frame['class'] ?? '') !== self::class,
            );
            self::assertStringNotContainsString('my wrong secret', $failure->getMessage() . print_r($trace, true));
        }
    }

    public function testAPasswordComesFromTheFile(): void
    {
        $cluster = Cluster::shared();
        $file = $this->file('pgpass', "127.0.0.1:{$cluster->port}:*:{$cluster->user}:{$cluster->password}\n", 0o600);
        $dsn = "host=127.0.0.1 port={$cluster->port} user={$cluster->user} dbname=postgres passfile={$file}";
        self::end((new Connector(PostgresOptions::fromDsn($dsn)))->connect());

        chmod($file, 0o644);
        $this->expectException(AuthenticationException::class);
        $this->expectExceptionMessage("the password file {$file} is ignored");
        (new Connector(PostgresOptions::fromDsn($dsn)))->connect();
    }

    #[RequiresPhpExtension('intl')]
    public function testAPasswordBeyondAsciiIsNormalizedAsByTheServer(): void
    {
        $role = self::role("password '\u{2168}\u{AD} e\u{301}'");
        foreach (["\u{2168}\u{AD} e\u{301}", "IX\u{A0}\u{E9}"] as $password) {
            self::end(
                (new Connector(PostgresOptions::fromDsn(
                    Cluster::shared()->tcpDsn(user: $role, password: $password),
                )))->connect(),
            );
        }
        $this->addToAssertionCount(1);
    }

    public function testALoginWithManyIterationsSucceeds(): void
    {
        $salt = random_bytes(16);
        $salted = hash_pbkdf2('sha256', 'secret', $salt, 20_000, 32, true);
        $stored = hash('sha256', hash_hmac('sha256', 'Client Key', $salted, true), true);
        $verifier = Scram::PLAIN
            . '$20000:'
            . base64_encode($salt)
            . '$'
            . base64_encode($stored)
            . ':'
            . base64_encode(hash_hmac('sha256', 'Server Key', $salted, true));
        $role = self::role("password '{$verifier}'");

        $dsn = Cluster::shared()->tcpDsn(user: $role, password: 'secret');
        self::end((new Connector(PostgresOptions::fromDsn($dsn)))->connect());
        $this->addToAssertionCount(1);
    }

    public function testMissingDatabaseObjectsAreReportedWithTheirSqlState(): void
    {
        try {
            (new Connector(PostgresOptions::fromDsn(Cluster::shared()->dsn(dbname: 'nowhere'))))->connect();
            self::fail('It was there');
        } catch (ConnectionFailedException $failure) {
            self::assertSame('3D000', $failure->sqlState);
            self::assertStringContainsString('database "nowhere" does not exist', $failure->getMessage());
        }
    }

    public function testTheNextHostIsUsedIfTheFirstIsUnreachable(): void
    {
        $cluster = Cluster::shared();
        $steps = new class extends AbstractLogger {
            /** @var list<string> */
            public array $steps = [];

            public function log($level, string|\Stringable $message, array $context = []): void
            {
                $this->steps[] = strtr(
                    (string) $message,
                    ['{where}' => \is_string($context['where'] ?? null) ? $context['where'] : ''],
                );
            }
        };
        $session = (new Connector(
            PostgresOptions::fromDsn(
                "host={$this->path()},{$cluster->host} port=1,{$cluster->port} user={$cluster->user}",
            )->with(['logger' => $steps]),
        ))->connect();

        self::assertSame($cluster->host, $session->endpoint->host->host);
        self::assertSame(["Could not connect to PostgreSQL at {$this->path('.s.PGSQL.1')}: {reason}"], $steps->steps);
        self::end($session);
    }

    public function testACancelRequestUsesASeparateConnection(): void
    {
        $connector = new Connector(PostgresOptions::fromDsn(Cluster::shared()->tcpDsn()));
        $session = $connector->connect();
        $query = Async::run(static fn() => self::ask($session, 'select pg_sleep(60)'));
        self::awaitQuery($session->pid);

        $connector->cancel($session);

        self::assertSame([['57014']], $query->await());
        self::end($session);
    }

    public function testAQueryAfterADeliveredCancelRequestIsNotCancelled(): void
    {
        $connector = new Connector(PostgresOptions::fromDsn(Cluster::shared()->dsn()));
        $session = $connector->connect();
        for ($i = 0; $i < 30; ++$i) {
            $connector->cancel($session);
            self::assertSame([['1']], self::ask($session, 'select 1'));
        }
        self::end($session);
    }

    public function testSessionsAreChosenByTheirKind(): void
    {
        $primary = Cluster::shared();
        $standby = Cluster::start();
        $standby->restart(); // the next start is that of a server that was shut down normally
        touch("{$standby->host}/data/standby.signal");
        $standby->restart();
        $connect = static function (string $target, TemporaryPostgres ...$clusters): string {
            $hosts = implode(',', array_column($clusters, 'host'));
            $ports = implode(',', array_column($clusters, 'port'));
            try {
                $session = (new Connector(PostgresOptions::fromDsn(
                    "host={$hosts} port={$ports} user=postgres target_session_attrs={$target}",
                )))->connect();
                self::end($session);

                return $session->endpoint->host->host;
            } catch (ConnectionFailedException $failure) {
                return $failure->getMessage();
            }
        };

        foreach ([TargetSessionAttrs::Any, TargetSessionAttrs::ReadWrite, TargetSessionAttrs::Primary] as $target) {
            self::assertSame($primary->host, $connect($target->value, $primary, $standby), $target->value);
        }
        foreach ([
            TargetSessionAttrs::Any,
            TargetSessionAttrs::ReadOnly,
            TargetSessionAttrs::Standby,
            TargetSessionAttrs::PreferStandby,
        ] as $target) {
            self::assertSame($standby->host, $connect($target->value, $standby, $primary), $target->value);
        }
        foreach ([TargetSessionAttrs::ReadWrite, TargetSessionAttrs::Primary] as $target) {
            self::assertSame($primary->host, $connect($target->value, $standby, $primary), $target->value);
        }
        $targets = [TargetSessionAttrs::ReadOnly, TargetSessionAttrs::Standby, TargetSessionAttrs::PreferStandby];
        foreach ($targets as $target) {
            self::assertSame($standby->host, $connect($target->value, $primary, $standby), $target->value);
        }
        self::assertSame($primary->host, $connect('prefer-standby', $primary));
        self::assertStringContainsString(
            "the server is a primary, but 'standby' was requested",
            $connect('standby', $primary),
        );
        self::assertStringContainsString(
            "the server is a standby, but 'read-write' was requested",
            $connect('read-write', $standby),
        );
        $standby->stop();
    }

    #[RequiresPhpExtension('openssl')]
    public function testConnectionsAreEncryptedAsTheModeRequires(): void
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = $certificates->forServer('localhost');
        [$clientCertificate, $clientKey] = $certificates->forClient('bycert');
        $cluster = Cluster::start(options: new TemporaryPostgresOptions(
            hba: [
                'hostssl all bycert 127.0.0.1/32 cert',
                'host all bymd5 127.0.0.1/32 md5',
                'host all bypassword 127.0.0.1/32 password',
            ],
            certificate: $certificate,
            key: $key,
            caFile: $certificates->authority,
        ));
        Cluster::ask(
            "create role bycert login; create role bypassword login password 'secret'; "
                . "set password_encryption = 'md5'; create role bymd5 login password 'secret'",
            $cluster->dsn(),
        );
        $options = PostgresOptions::fromDsn($cluster->tcpDsn(host: 'localhost', sslrootcert: $certificates->authority));
        $by = static fn(PostgresOptions $options): OpenedConnection => (new Connector($options))->connect();

        foreach ([
            null,
            TlsMode::VerifyFull,
            TlsMode::VerifyCa,
            TlsMode::Require,
            TlsMode::Prefer,
            TlsMode::Disable,
        ] as $mode) {
            $session = $by($options->with(['tls' => $mode]));
            self::assertSame($mode !== TlsMode::Disable, $session->tls);
            self::assertSame(
                [[$session->tls ? 't' : 'f']],
                self::ask($session, "select ssl from pg_stat_ssl where pid = {$session->pid}"),
            );
            self::end($session);
        }

        $session = $by($options->with(['channelBinding' => ChannelBinding::Require]));
        self::assertSame([['100000']], self::ask($session, "select length(repeat('x', 100000))"));
        $query = Async::run(static fn() => self::ask($session, 'select pg_sleep(60)'));
        self::awaitQuery($session->pid, $cluster->dsn());
        (new Connector($options))->cancel($session);
        self::assertSame([['57014']], $query->await());
        self::end($session);

        self::end($by($options->with(
            ['user' => 'bycert', 'password' => null, 'tlsCertificate' => $clientCertificate, 'tlsKey' => $clientKey],
        )));
        self::end($by($options->with(
            ['user' => 'bymd5', 'password' => 'secret', 'authentication' => [AuthenticationMethod::Md5]],
        )));
        self::end($by($options->with(
            ['user' => 'bypassword', 'password' => 'secret', 'authentication' => [AuthenticationMethod::Password]],
        )));

        foreach ([
            'for another host than' => $options->with(['hosts' => "127.0.0.1:{$cluster->port}"]),
            "the system's store has signed it" => $options->with(
                ['tlsCaFile' => null, 'tls' => TlsMode::VerifyFull],
            ),
            'has signed it' => $options->with(['tlsCaFile' => (new Certificates($this->path()))->authority]),
            "'password' authentication, which is not allowed" => $options->with(['user' => 'bypassword']),
            "'md5' authentication, which is not allowed" => $options->with(['user' => 'bymd5']),
            'connection requires a valid client certificate' => $options->with(['user' => 'bycert']),
            'the connection is not encrypted' => $options->with(
                ['tls' => TlsMode::Disable, 'channelBinding' => ChannelBinding::Require],
            ),
        ] as $message => $refused) {
            try {
                $by($refused);
                self::fail("It was taken: {$message}");
            } catch (ConnectionFailedException|AuthenticationException $failure) {
                self::assertStringContainsString($message, $failure->getMessage());
            }
        }
        self::end($by($options->with(['hosts' => "127.0.0.1:{$cluster->port}", 'tls' => TlsMode::VerifyCa])));
        $cluster->stop();
    }

    /**
     * Runs a simple query in the calling fiber.
     *
     * @return list<list<string|null>> rows, or the SQLSTATE of an error
     */
    private static function ask(OpenedConnection $session, string $sql): array
    {
        return RawSession::ask($session, $sql);
    }

    private static function end(OpenedConnection $session): void
    {
        fclose($session->stream);
    }

    private static function role(string $options): string
    {
        $role = 'role_' . bin2hex(random_bytes(6));
        Cluster::ask("create role {$role} login {$options}");

        return $role;
    }

    /** Returns when the server works on a query of this process. */
    private static function awaitQuery(int $pid, ?string $dsn = null): void
    {
        do {
            \Amp\delay(0.001);
            $rows = Cluster::ask("select 1 from pg_stat_activity where pid = {$pid} and state = 'active'", $dsn);
        } while ($rows === []);
    }
}
