<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Amp\CancelledException;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ChannelBinding;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Pgsql\Conninfo;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\PostgresDriver;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSession;
use Spindle\Postgres\Testing\TemporaryClusterOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Postgres\UnsupportedException;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Postgres\Watchdog;
use Spindle\Tests\WebServer;
use Symfony\Component\Process\Process;

#[RequiresPhpExtension('pgsql')]
#[RequiresPhpExtension('sockets')]
final class PgsqlConnectTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;
    use UsesCluster;
    use WebServer;

    public function testASessionIsReadyAndHasItsSettings(): void
    {
        $session = self::open(
            Cluster::shared()->dsn(),
            applicationName: "it's a \\ test",
            statementTimeout: 4.5,
            settings: ['search_path' => "a, 'b'", 'my.own' => '\\'],
        );

        self::assertSame(
            [["it's a \\ test", '4500ms', "a, 'b'", '\\', 'ISO, MDY', 'UTF8', $session->backendPid()]],
            $session->query(
                "SELECT current_setting('application_name'), current_setting('statement_timeout'), "
                    . "current_setting('search_path'), current_setting('my.own'), current_setting('DateStyle'), "
                    . "current_setting('client_encoding'), pg_backend_pid()",
            )->lists(),
        );
        self::assertSame('2s', $session->query('SHOW client_connection_check_interval')->value());
    }

    public function testDatesAreIsoWhateverTheRoleHasSet(): void
    {
        $role = self::role('');
        Cluster::ask("ALTER ROLE {$role} SET DateStyle = 'German'");
        self::assertInstanceOf(
            \DateTimeImmutable::class,
            self::open(Cluster::shared()->dsn(user: $role))->query("SELECT '2024-02-29'::date")->value(),
        );
    }

    public function testTheEnvironmentHasNoEffect(): void
    {
        $environment = [
            'PGHOST' => 'nowhere.invalid',
            'PGPORT' => '1',
            'PGOPTIONS' => '-c no.such',
            'PGSSLMODE' => 'verify-full',
            'PGTARGETSESSIONATTRS' => 'standby',
            'PGDATESTYLE' => 'German',
            'PGREQUIREPEER' => 'nobody',
            'PGSSLROOTCERT' => '/no/file',
        ];
        $options = PostgresOptions::of(Cluster::shared()->tcpDsn())->with(['driver' => PostgresDriver::ExtPgsql]);
        foreach ($environment as $name => $value) {
            putenv("{$name}={$value}");
        }
        try {
            $session = (new SessionFactory($options))->open(null);
        } finally {
            array_map(putenv(...), array_keys($environment));
        }
        self::assertSame('ISO, MDY', $session->query('SHOW DateStyle')->value());
    }

    public function testAWrongPasswordIsReportedButNotShown(): void
    {
        try {
            self::open(Cluster::shared()->tcpDsn(password: 'my wrong secret'));
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

    public function testNoPasswordIsReported(): void
    {
        $cluster = Cluster::shared();
        $this->expectException(AuthenticationException::class);
        $this->expectExceptionMessage('requests the password of the user');
        self::open("host=127.0.0.1 port={$cluster->port} user={$cluster->user} dbname=postgres passfile=/no/file");
    }

    public function testAPasswordComesFromTheFile(): void
    {
        $cluster = Cluster::shared();
        $file = $this->file('pgpass', "127.0.0.1:{$cluster->port}:*:{$cluster->user}:{$cluster->password}\n", 0o600);

        self::assertTrue(
            self::open(
                "host=127.0.0.1 port={$cluster->port} user={$cluster->user} dbname=postgres passfile={$file}",
            )->isOpen(),
        );
    }

    public function testMissingObjectsAreReportedWithTheirSqlState(): void
    {
        try {
            self::open(Cluster::shared()->dsn(dbname: 'nowhere'));
            self::fail('It was there');
        } catch (ConnectionFailedException $failure) {
            self::assertSame('3D000', $failure->sqlState);
            self::assertStringContainsString('database "nowhere" does not exist', $failure->getMessage());
        }
        try {
            self::open(Cluster::shared()->dsn(), settings: ['nonsense' => '1']);
            self::fail('It was set');
        } catch (ConnectionFailedException $failure) {
            self::assertStringContainsString(
                'unrecognized configuration parameter "nonsense" (42704)',
                $failure->getMessage(),
            );
        }
        foreach ([
            "host={$this->path()} user=a",
            'host=127.0.0.1 port=1 user=a sslmode=disable',
            'host=localhost port=1 user=a',
        ] as $dsn) {
            try {
                self::open($dsn);
                self::fail('It was there');
            } catch (ConnectionFailedException $failure) {
                self::assertMatchesRegularExpression('~No such file or directory|refused~i', $failure->getMessage());
            }
        }
    }

    public function testTheNextHostOfTheRequestedKindIsUsed(): void
    {
        $cluster = Cluster::shared();
        $hosts = [new PostgresHost('127.0.0.1', 1), new PostgresHost($cluster->host, $cluster->port)];
        self::assertTrue(self::open($cluster->tcpDsn(), hosts: $hosts)->isOpen());
        self::assertTrue(self::open($cluster->dsn(), targetSession: TargetSession::Primary)->isOpen());
        self::assertTrue(self::open($cluster->dsn(), targetSession: TargetSession::PreferStandby)->isOpen());
        $this->expectException(ConnectionFailedException::class);
        $this->expectExceptionMessage("the server is a primary, but 'standby' was requested");
        self::open($cluster->dsn(), targetSession: TargetSession::Standby);
    }

    public function testASilentServerDoesNotBlockAndTimesOut(): void
    {
        $server = FakeServer::start(static fn(FakeConnection $connection) => $connection->readToEnd());
        $failure = null;
        $gap = Watchdog::during(static function () use ($server, &$failure): void {
            try {
                self::open($server->dsn(sslmode: 'disable'), connectTimeout: 1.0);
            } catch (ConnectionFailedException $failure) {
            }
        });
        self::assertStringContainsString(
            'no answer within 1 s, while waiting for the login',
            (string) $failure?->getMessage(),
        );
        self::assertLessThan(0.5, $gap);
        try {
            (new SessionFactory(self::options($server->dsn(sslmode: 'disable'))))->open(new TimeoutCancellation(0.01));
            self::fail('There was a session');
        } catch (CancelledException) {
        }
        $server->stop();
    }

    public function testAServerThatIsSilentAfterTheLoginTimesOut(): void
    {
        $server = FakeServer::start(static function (FakeConnection $connection): void {
            $connection->welcome();
            $connection->readToEnd();
        });
        $start = hrtime(true);
        try {
            self::open($server->dsn(sslmode: 'disable'), connectTimeout: 0.1);
            self::fail('There was a session');
        } catch (ConnectionFailedException $failure) {
            self::assertStringContainsString(
                'no answer within 0.1 s, while waiting for the session to be set up',
                $failure->getMessage(),
            );
        }
        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
        $server->stop();
    }

    public function testAServerThatEndsTheConnectionAtAnyPointIsReported(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $dsn = "host={$proxy->host} port={$proxy->port} user="
            . Cluster::shared()->user
            . ' password='
            . Cluster::shared()->password
            . ' dbname=postgres sslmode=disable';
        $made = 0;
        for ($bytes = 0; $bytes < 700; $bytes += 7) {
            $proxy->closeAfter($bytes, Direction::ToClient);
            try {
                self::open($dsn)->close();
                ++$made;
            } catch (ConnectionFailedException) {
            }
        }
        self::assertLessThan(100, $made);
        $proxy->cutNone();
        self::assertTrue(self::open($dsn)->isOpen());
        $proxy->stop();
    }

    public function testBytesMayComeOneByOne(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->slice(1);
        $session = self::open(
            "host={$proxy->host} port={$proxy->port} user="
                . Cluster::shared()->user
                . ' password='
                . Cluster::shared()->password
                . ' dbname=postgres',
        );
        self::assertSame(
            [[1, 'a'], [2, 'a']],
            $session->query('SELECT i, $1::text FROM generate_series(1, 2) i', ['a'])->lists(),
        );
        $session->script('CREATE TEMP TABLE t (i int PRIMARY KEY)');
        self::assertSame(3, $session->copyFrom('COPY t FROM STDIN', [[1], [2], [3]], null));
        try {
            $session->copyFrom('COPY t FROM STDIN', [[1]], null);
            self::fail('It was stored');
        } catch (PostgresException) {
        }
        $proxy->slice(0x1_0000);
        $session->close();
        $proxy->stop();
    }

    public function testTlsIsVerifiedAsTheModeRequires(): void
    {
        $authority = new Certificates($this->path());
        [$certificate, $key] = $authority->forServer('localhost');
        $cluster = Cluster::start(
            [],
            new TemporaryClusterOptions(certificate: $certificate, key: $key, authority: $authority->authority),
        );
        $other = new Certificates($this->path(), 'another authority');
        $encrypted = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
        $name = [new PostgresHost('localhost', $cluster->port, '127.0.0.1')];
        $address = [new PostgresHost('127.0.0.1', $cluster->port)];

        foreach ([
            [TlsMode::VerifyFull, $name],
            [TlsMode::VerifyCa, $address],
            [TlsMode::Require, $address],
        ] as [$mode, $hosts]) {
            foreach ([ChannelBinding::Prefer, ChannelBinding::Require] as $binding) {
                self::assertTrue(
                    self::open(
                        $cluster->tcpDsn(),
                        hosts: $hosts,
                        tls: $mode,
                        tlsRootCertificate: $authority->authority,
                        channelBinding: $binding,
                    )->query($encrypted)->value(),
                );
            }
        }
        self::assertTrue(self::open($cluster->tcpDsn(), tls: TlsMode::Prefer)->query($encrypted)->value());
        self::assertTrue(self::open($cluster->tcpDsn(), tls: TlsMode::Require)->query($encrypted)->value());
        self::assertFalse(self::open($cluster->tcpDsn(), tls: TlsMode::Disable)->query($encrypted)->value());
        foreach ([
            [TlsMode::VerifyFull, $address, $authority],
            [TlsMode::VerifyFull, $name, $other],
            [TlsMode::VerifyCa, $address, $other],
        ] as [$mode, $hosts, $trusted]) {
            try {
                self::open($cluster->tcpDsn(), hosts: $hosts, tls: $mode, tlsRootCertificate: $trusted->authority);
                self::fail('It was trusted');
            } catch (ConnectionFailedException $failure) {
                self::assertStringContainsString('certificate', $failure->getMessage());
            }
        }
        self::assertTrue(self::open($cluster->tcpDsn(), tls: TlsMode::Prefer)->isOpen());
        $session = self::open($cluster->tcpDsn(), tls: TlsMode::Require);
        try {
            $session->query('SELECT pg_sleep(1000)', [], new TimeoutCancellation(0.05));
            self::fail('It was answered');
        } catch (CancelledException) {
        }
        self::assertSame(0x10_0000, $session->query('SELECT length($1::text)', [str_repeat('x', 0x10_0000)])->value());
        $session->close();
        $cluster->stop();
    }

    public function testAServerWithoutTlsIsRefusedIfTlsIsRequired(): void
    {
        $this->expectException(ConnectionFailedException::class);
        $this->expectExceptionMessageMatches('/does not support SSL, but SSL was required|does not offer TLS/');
        self::open(Cluster::shared()->tcpDsn(), tls: TlsMode::Require);
    }

    public function testChannelBindingCanBeRequired(): void
    {
        $this->expectException(AuthenticationException::class);
        $this->expectExceptionMessage('channel binding');
        self::open(Cluster::shared()->tcpDsn(), tls: TlsMode::Disable, channelBinding: ChannelBinding::Require);
    }

    public function testAPasswordIsNotSentInAWeakForm(): void
    {
        $cluster = Cluster::start(
            ['password_encryption' => 'md5'],
            new TemporaryClusterOptions(
                hba: ['host all weak 127.0.0.1/32 md5', 'host all all 127.0.0.1/32 password', 'local all all trust'],
            ),
        );
        self::open($cluster->dsn())->query("CREATE ROLE weak LOGIN PASSWORD 'weak'");
        $weak = $cluster->tcpDsn(user: 'weak', password: 'weak', dbname: 'postgres');
        foreach ([$cluster->tcpDsn(), $weak] as $dsn) {
            foreach ([[], [AuthenticationMethod::None, AuthenticationMethod::Scram]] as $allowed) {
                try {
                    self::open($dsn, ...($allowed === [] ? [] : ['authentication' => $allowed]));
                    self::fail('The password was sent');
                } catch (AuthenticationException $refusal) {
                    self::assertMatchesRegularExpression('~password|md5~', $refusal->getMessage());
                }
            }
            self::assertTrue(self::open($dsn, authentication: AuthenticationMethod::cases())->isOpen());
        }
        $cluster->stop();
    }

    public function testAnOldLibpqIsNotTrustedWithAPassword(): void
    {
        $endpoint = new Endpoint(new PostgresHost('db.example.com'), '192.0.2.1');
        $options = new PostgresOptions('db.example.com', 'me', 'secret', tls: TlsMode::Require);
        $allowed = [
            $options->with(['tls' => TlsMode::VerifyFull, 'tlsRootCertificate' => __FILE__]),
            $options->with(['channelBinding' => ChannelBinding::Require]),
            $options->with(['password' => null]),
            $options->with(['authentication' => AuthenticationMethod::cases()]),
        ];
        foreach ($allowed as $one) {
            self::assertStringContainsString(
                "host='db.example.com' hostaddr='192.0.2.1'",
                Conninfo::of($one, $endpoint),
            );
        }
        foreach ([
            $options,
            $options->with(['authentication' => [AuthenticationMethod::Scram], 'password' => null]),
        ] as $refused) {
            try {
                self::assertStringContainsString('require_auth=', Conninfo::of($refused, $endpoint));
            } catch (UnsupportedException $refusal) {
                self::assertLessThan(16, Conninfo::version());
                self::assertStringNotContainsString('secret', $refusal->getMessage());
            }
        }
    }

    public function testAPersistentConnectionIsReusedInItsInitialState(): void
    {
        $script = new Process([\PHP_BINARY, __DIR__ . '/persistent.php', Cluster::shared()->dsn()]);
        $script->mustRun();
        self::assertSame([
            'two at once are two' => true,
            'found again' => true,
            'as at first' => [['0', 'x', null, 0, 'a']],
            'its transaction' => 'rolled back',
            'after it was lost' => 'another',
            'after it was closed while busy' => 'another, at once',
        ], json_decode($script->getOutput(), true), $script->getOutput() . $script->getErrorOutput());
    }

    public function testFpmReusesAPersistentConnection(): void
    {
        $page = $this->file(
            'page.php',
            strtr(
                (string) file_get_contents(__DIR__ . '/page.php'),
                ['__DIR__' => var_export(__DIR__, true), '{dsn}' => Cluster::shared()->dsn()],
            ),
        );
        $this->startFpm();
        $pids = $runs = [];
        foreach ([1, 2, 3] as $_) {
            $answer = $this->askFpm($page);
            self::assertSame(1, preg_match('~^\[(\d+),"(\w+)",42,1]$~D', $answer, $match), $answer);
            $pids[$match[1]] = $runs[$match[2]] = true;
        }
        self::assertCount(1, $pids);
        self::assertCount(3, $runs);
        $this->stopServer();
        Eventually::holdsByItself(
            static fn(): bool
                => Cluster::ask('SELECT pid FROM pg_stat_activity WHERE pid = ' . array_key_first($pids)) === [],
            'it goes with its process',
        );
    }

    /** @param mixed ...$changes options by name */
    private static function options(string $dsn, mixed ...$changes): PostgresOptions
    {
        /** @var array<string, mixed> $named */
        $named = ['driver' => PostgresDriver::ExtPgsql, ...$changes];

        return PostgresOptions::of($dsn)->with($named);
    }

    /** @param mixed ...$changes options by name */
    private static function open(string $dsn, mixed ...$changes): Session
    {
        return (new SessionFactory(self::options($dsn, ...$changes)))->open(null);
    }

    private static function role(string $options): string
    {
        $name = 'role_' . bin2hex(random_bytes(6));
        Cluster::ask("CREATE ROLE {$name} LOGIN {$options}");

        return $name;
    }
}
