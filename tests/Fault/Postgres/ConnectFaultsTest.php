<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Dns\DnsException;
use Amp\Dns\DnsRecord;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\BeforeClass;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Internal\Network\Deadline;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\Connector;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Connect\HostSearch;
use Spindle\Postgres\Internal\Connect\OpenedConnection;
use Spindle\Postgres\Internal\Connect\Scram;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\ScramServer;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Scale;
use Spindle\Tests\ScriptedNames;
use Spindle\Tests\Streams;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;
use function Amp\Dns\dnsResolver;

/** Tests servers and networks that let no client in. Nothing of a failed attempt stays open. */
final class ConnectFaultsTest extends TidyTestCase
{
    use OwnDirectory;
    use UsesCluster;

    private const PASSWORD = 'correct horse';

    /** Replaces Amp's resolver, which has its own timers. */
    #[BeforeClass]
    public static function startTheResolver(): void
    {
        dnsResolver();
    }

    public function testAPortWithoutAListenerRefuses(): void
    {
        $port = self::closedPort();

        self::assertFailure("127.0.0.1:{$port}: connection refused", self::options("127.0.0.1:{$port}"));
    }

    public function testAllAddressesOfANameAreTried(): void
    {
        $port = self::closedPort();

        self::assertFailure(
            "localhost:{$port} (127.0.0.1): connection refused; localhost:{$port} (::1): ",
            self::options("localhost:{$port}"),
        );
    }

    public function testASocketThatIsNotThereIsReported(): void
    {
        self::assertFailure("{$this->path('.s.PGSQL.5432')}: no such file or directory", self::options($this->path()));
    }

    public function testAServerThatIsSilentIsGivenUpInTime(): void
    {
        $server = FakeServer::start(static fn(FakeConnection $client) => $client->stall());
        foreach ([
            'the login' => TlsMode::Disable,
            'the answer to the TLS request' => TlsMode::Require,
        ] as $for => $tls) {
            self::assertFailure(
                "no answer within 0.1 s, while waiting for {$for}",
                self::options($server)->with(['tls' => $tls, 'connectTimeout' => 0.1]),
            );
        }
        $server->stop();
    }

    public function testAServerThatIsSilentAfterTheLoginIsGivenUpInTime(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->welcome();
            $client->stall();
        });

        self::assertFailure(
            'no answer within 0.1 s, while waiting for the session to be set up',
            self::options($server)->with(['tls' => TlsMode::Disable, 'connectTimeout' => 0.1]),
        );
        $server->stop();
    }

    public function testAServerThatAnswersByTheByteIsNotGivenMoreTimeForIt(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readStartup();
            for ($notices = 0; $notices < 1000; ++$notices) {
                $client->writeInPieces(Message::noticeResponse('00000', 'in a moment'));
            }
        });

        $started = hrtime(true);
        self::assertFailure('no answer within 0.2 s', self::options($server)->with(['connectTimeout' => 0.2]));
        self::assertLessThan(5.0, (hrtime(true) - $started) / 1e9);
        $server->stop();
    }

    public function testASlowServerIsWaitedFor(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readStartup();
            $client->writeInPieces(self::welcome());
            $client->readToEnd();
        });

        fclose((new Connector(self::options($server)))->connect()->stream);
        self::assertSame(1, $server->connections);
        $server->stop();
    }

    public function testASilentHostLeavesTimeForTheNext(): void
    {
        $silent = FakeServer::start(static fn(FakeConnection $client) => $client->stall());
        $server = self::trusting();

        $session = (new Connector(
            self::options($silent)->with(
                [
                    'hosts' => [
                        new PostgresHost($silent->host, $silent->port),
                        new PostgresHost($server->host, $server->port),
                    ],
                    'connectTimeout' => 1.0,
                ],
            ),
        ))->connect();

        self::assertSame($server->port, $session->endpoint->host->port);
        fclose($session->stream);
        $silent->stop();
        $server->stop();
    }

    public function testASilentHostDelaysTheNextOnlyALittle(): void
    {
        $closed = false;
        $silent = self::silent($closed);
        $server = self::trusting();

        // A share of this time would be longer than the limit of the test.
        $session = (new Connector(self::options("127.0.0.1:{$silent->port},127.0.0.1:{$server->port}")->with(
            ['connectTimeout' => 36_000.0],
        )))->connect();

        self::assertSame($server->port, $session->endpoint->host->port);
        Eventually::holds(static function () use (&$closed): bool {
            return $closed;
        }, 'the other connection is closed');
        fclose($session->stream);
        $silent->stop();
        $server->stop();
    }

    public function testASilentAddressDelaysTheNextOnlyALittle(): void
    {
        $server = self::trusting();
        $silent = stream_socket_server("tcp://127.0.0.9:{$server->port}");
        self::assertNotFalse($silent);
        $records = [new DnsRecord('127.0.0.9', DnsRecord::A), new DnsRecord('127.0.0.1', DnsRecord::A)];
        self::withResolver(static fn() => $records, static function () use ($server): void {
            $session = (new Connector(self::options("db.test:{$server->port}")->with(
                ['tls' => TlsMode::Disable, 'connectTimeout' => 36_000.0],
            )))->connect();
            self::assertSame("db.test:{$server->port} (127.0.0.1)", (string) $session->endpoint);
            fclose($session->stream);
        });
        fclose($silent);
        $server->stop();
    }

    public function testASilentHostDoesNotPreventThatAPrimaryIsUsedInsteadOfAStandby(): void
    {
        $closed = false;
        $silent = self::silent($closed);
        $options = PostgresOptions::fromDsn(Cluster::shared()->tcpDsn());

        $session = (new Connector($options->with([
            'hosts' => [new PostgresHost($silent->host, $silent->port), ...$options->hosts],
            'connectTimeout' => 36_000.0,
            'targetSessionAttrs' => TargetSessionAttrs::PreferStandby,
        ])))->connect();

        self::assertEquals($options->hosts[0], $session->endpoint->host);
        fclose($session->stream);
        $silent->stop();
    }

    public function testASlowPrimaryIsUsedInsteadOfAStandbyThatHangs(): void
    {
        $attempts = [];
        $attempt = static function (
            Endpoint $endpoint,
            TargetSessionAttrs $target,
            Deadline $deadline,
        ) use (&$attempts) {
            $attempts[] = "{$endpoint->host->host} {$target->value}";
            if ($endpoint->host->host === '127.0.0.1') {
                (new DeferredFuture())->getFuture()->await($deadline->asCancellation());
            }
            // The next attempt starts before this delay ends, even on a slow machine, because its timer is due earlier.
            if ($target === TargetSessionAttrs::Standby) {
                delay(1.1);
                throw AttemptFailedException::unsuitable('the server is a primary');
            }

            return 'a session';
        };
        $options = self::options('127.0.0.1:1,127.0.0.2:1')->with([
            'hosts' => [new PostgresHost('127.0.0.1'), new PostgresHost('127.0.0.2')],
            'connectTimeout' => 36_000.0,
            'targetSessionAttrs' => TargetSessionAttrs::PreferStandby,
        ]);

        $session = (new HostSearch($options, $attempt))->find(new TimeoutCancellation(20));

        self::assertSame('a session', $session);
        self::assertSame(['127.0.0.1 standby', '127.0.0.2 standby', '127.0.0.2 any'], $attempts);
    }

    public function testAFailedLoginIsReportedSoonAlthoughTheHostBeforeDoesNotAnswer(): void
    {
        $closed = false;
        $silent = self::silent($closed);
        $wrong = self::refusing('28P01', 'password authentication failed');
        $server = self::trusting();
        $hosts = "127.0.0.1:{$silent->port},127.0.0.1:{$wrong->port},127.0.0.1:{$server->port}";

        $failure = self::failure(self::options($hosts)->with(['connectTimeout' => 60.0]));

        self::assertInstanceOf(AuthenticationException::class, $failure);
        self::assertSame(0, $server->connections);
        Eventually::holds(static function () use (&$closed): bool {
            return $closed;
        }, 'the other connection is closed');
        array_map(static fn(FakeServer $server) => $server->stop(), [$silent, $wrong, $server]);
    }

    /** @return iterable<string, array{0: list<string>, 1: string, 2: string|null, 3?: bool}> */
    public static function refusedLogins(): iterable
    {
        $hosts = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
        yield 'of a later host' => [$hosts, '127.0.0.2', '127.0.0.1'];
        yield 'of a later host, and no host has a session' => [$hosts, '127.0.0.2', null];
        yield 'of a later address' => [['db.test'], '127.0.0.2', '127.0.0.1'];
        yield 'of a later address of the first host' => [['db.test', '127.0.0.4'], '127.0.0.2', null];
        yield 'of a later address, and the first one hangs' => [['db.test', '127.0.0.4'], '127.0.0.2', null, true];
        yield 'of an earlier host' => [$hosts, '127.0.0.1', null];
    }

    /**
     * @param list<string> $hosts of which db.test has three addresses
     * @param string $refusing address that refuses the login, after the second attempt has begun
     * @param string|null $good address that offers a session after that; other addresses do not
     * @param bool $hangs whether the addresses before the refusing one never answer
     */
    #[DataProvider('refusedLogins')]
    public function testARefusedLoginEndsOnlyTheAttemptsAfterIt(
        array $hosts,
        string $refusing,
        ?string $good,
        bool $hangs = false,
    ): void {
        $attempts = [];
        [$second, $refused] = [new DeferredFuture(), new DeferredFuture()];
        $attempt = static function (Endpoint $endpoint, TargetSessionAttrs $target, Deadline $deadline) use (
            $refusing,
            $good,
            $hangs,
            $second,
            $refused,
            &$attempts,
        ): string {
            $attempts[] = $endpoint->ip;
            if (\count($attempts) === 2) {
                $second->complete();
            }
            if ($endpoint->ip === $refusing) {
                $second->getFuture()->await();
                \Revolt\EventLoop::queue($refused->complete(...));
                throw AttemptFailedException::authentication('the password is wrong');
            }
            $answer = $endpoint->ip < $refusing && !$hangs ? $refused : new DeferredFuture();
            $answer->getFuture()->await($deadline->asCancellation());
            delay(0.01);
            $deadline->throwIfCancelled();

            return $endpoint->ip === $good ? 'a session' : throw AttemptFailedException::unsupportedVersion();
        };
        $records = array_map(
            static fn(int $number) => new DnsRecord("127.0.0.{$number}", DnsRecord::A),
            [1, 2, 3],
        );
        $options = self::options('127.0.0.1')->with([
            'hosts' => array_map(static fn(string $host) => new PostgresHost($host), $hosts),
            'connectTimeout' => 20.0,
        ]);
        self::withResolver(static fn() => $records, static function () use ($options, $attempt, $good): void {
            try {
                self::assertSame('a session', (new HostSearch($options, $attempt))->find(new TimeoutCancellation(15)));
                self::assertNotNull($good);
            } catch (AuthenticationException $failure) {
                self::assertNull($good, $failure->getMessage());
            }
        });

        // The attempt with the next host may begin before the one with the second address of the host before it.
        self::assertSame(['127.0.0.1', '127.0.0.2'], array_values(array_diff($attempts, ['127.0.0.4'])));
    }

    public function testAllAttemptsOfASearchThatIsCalledOffAreClosed(): void
    {
        $cancellation = new DeferredCancellation();
        $first = $second = false;
        $silent = [self::silent($first), self::silent($second, $cancellation->cancel(...))];
        try {
            (new Connector(self::options(
                "127.0.0.1:{$silent[0]->port},127.0.0.1:{$silent[1]->port}",
            )))->connect($cancellation->getCancellation());
            self::fail('It was not called off');
        } catch (CancelledException) {
        }
        Eventually::holds(static function () use (&$first, &$second): bool {
            return $first && $second;
        }, 'both connections are closed');
        array_map(static fn(FakeServer $server) => $server->stop(), $silent);
    }

    public function testEveryHostIsReportedWithItsReason(): void
    {
        $closed = self::closedPort();
        $http = FakeServer::start(
            static fn(FakeConnection $client) => $client->write("HTTP/1.1 400 Bad Request\r\n\r\n"),
        );
        $full = self::refusing('53300', 'sorry, too many clients already');
        $starting = self::refusing('57P03', 'the database system is starting up');

        $failure = self::failure(self::options(
            "127.0.0.1:{$closed},127.0.0.1:{$http->port},127.0.0.1:{$full->port},127.0.0.1:{$starting->port}",
        ));

        self::assertInstanceOf(ConnectionFailedException::class, $failure);
        self::assertSame(
            "Could not connect to PostgreSQL: 127.0.0.1:{$closed}: connection refused; "
            . "127.0.0.1:{$http->port}: the server does not speak the protocol of PostgreSQL, it sent: "
            . "'HTTP/1.1 400 Bad Request\\r\\n\\r\\n'; "
            . "127.0.0.1:{$full->port}: sorry, too many clients already (53300); "
            . "127.0.0.1:{$starting->port}: the database system is starting up (57P03)",
            $failure->getMessage(),
        );
        self::assertSame('57P03', $failure->sqlState);
        foreach ([$http, $full, $starting] as $server) {
            $server->stop();
        }
    }

    public function testAServerThatRefusesBeforeItIsAskedIsHeard(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->write(Message::errorResponse('53300', 'too many', severity: 'FATAL'));
            $client->close();
        });

        self::assertFailure('too many (53300)', self::options($server)->with(['tls' => TlsMode::Disable]));
        $server->stop();
    }

    public function testAFailedLoginIsTheEnd(): void
    {
        $wrong = self::refusing('28P01', 'password authentication failed');
        $server = self::trusting();

        $failure = self::failure(self::options("127.0.0.1:{$wrong->port},127.0.0.1:{$server->port}"));

        self::assertInstanceOf(AuthenticationException::class, $failure);
        self::assertSame(['28P01', 0], [$failure->sqlState, $server->connections]);
        $wrong->stop();
        $server->stop();
    }

    public function testAServerThatHangsUpIsReported(): void
    {
        foreach ([
            'while waiting for the login' => static fn(FakeConnection $client) => $client->readStartup(),
            'while waiting for the session to be set up' => static function (FakeConnection $client): void {
                $client->readStartup();
                $client->write(Message::welcome());
                $client->expect('Q');
            },
        ] as $when => $script) {
            foreach ([true, false] as $byReset) {
                $server = FakeServer::start(static function (FakeConnection $client) use ($script, $byReset): void {
                    $script($client);
                    $byReset ? $client->reset() : $client->close();
                });
                self::assertFailure("the server closed the connection {$when}", self::options($server));
                $server->stop();
            }
        }
    }

    public function testAServerWithoutTlsIsRefusedWhereTlsWasAskedFor(): void
    {
        $server = self::trusting();
        foreach ([TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull] as $mode) {
            self::assertFailure(
                "the server does not offer TLS, but '{$mode->value}' was requested",
                self::options($server)->with(['tls' => $mode]),
            );
        }
        fclose((new Connector(self::options($server)->with(['tls' => TlsMode::Prefer])))->connect()->stream);
        $server->stop();
    }

    public function testAnErrorInTheAnswerToTheRequestForTlsIsNotBelieved(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readRequest();
            $client->write(Message::errorResponse(
                '28000',
                'please send your password to example.com',
                severity: 'FATAL',
            ));
            $client->readToEnd();
        });

        $failure = self::failure(self::options($server)->with(['tls' => TlsMode::VerifyFull]));
        self::assertStringContainsString('answered the TLS request with an error', $failure->getMessage());
        self::assertStringNotContainsString('example.com', $failure->getMessage());
        $server->stop();
    }

    public function testAnotherProtocolIsDetectedAtTheTlsRequest(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readRequest();
            $client->write("HTTP/1.1 400 Bad Request\r\n\r\n");
            $client->readToEnd();
        });

        self::assertFailure(
            "does not speak the protocol of PostgreSQL, it sent: 'HTTP/1.1 400",
            self::options($server)->with(['tls' => TlsMode::Prefer]),
        );
        $server->stop();
    }

    #[RequiresPhpExtension('openssl')]
    public function testBytesPutBehindTheAnswerToTheRequestForTlsAreRefused(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readRequest();
            $client->write('S' . Message::welcome());
            $client->readToEnd();
        });

        self::assertFailure(
            'unencrypted bytes followed',
            self::options($server)->with(['tls' => TlsMode::Require]),
        );
        $server->stop();
    }

    /** @return iterable<string, array{string, string}> */
    public static function badCertificates(): iterable
    {
        yield 'of another host' => ['of another host', "for another host than '127.0.0.1'"];
        yield 'expired' => ['expired', 'not valid at this time'];
        yield 'of another authority' => ['of another authority', 'has signed it'];
        yield 'none' => ['none', 'TLS handshake'];
    }

    #[RequiresPhpExtension('openssl')]
    #[DataProvider('badCertificates')]
    public function testACertificateThatIsNotRightIsRefused(string $what, string $reason): void
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = match ($what) {
            'of another host' => $certificates->forServer('other.test'),
            'expired' => $certificates->expiredForServer('127.0.0.1'),
            'of another authority' => (new Certificates($this->path()))->forServer('127.0.0.1'),
            default => ['', ''],
        };
        $server = FakeServer::start(static function (FakeConnection $client) use ($certificate, $key): void {
            $client->readRequest();
            if ($certificate === '') {
                $client->write('S');
                delay(0.01);
                $client->write('not TLS at all, but long enough for a header');
                $client->readToEnd();
            } elseif ($client->startTls($certificate, $key)) {
                $client->welcome();
                throw new \LogicException('The client agreed');
            }
        });

        self::assertFailure($reason, self::options($server)->with(['tlsCaFile' => $certificates->authority]));
        $server->stop();
    }

    #[RequiresPhpExtension('openssl')]
    public function testAHandshakeThatGetsNoFurtherEndsInTime(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readRequest();
            $client->write('S');
            $client->stall();
        });

        self::assertFailure(
            'no answer within 0.1 s, while waiting for the TLS handshake',
            self::options($server)->with(['tls' => TlsMode::Require, 'connectTimeout' => 0.1]),
        );
        $server->stop();
    }

    /** @return iterable<string, array{string, string}> */
    public static function weakerLogins(): iterable
    {
        yield 'the password itself' => [
            Message::authenticationCleartext(),
            "'password' authentication, which is not allowed",
        ];
        yield 'MD5' => [Message::authenticationMd5('salt'), "'md5' authentication, which is not allowed"];
        yield 'no login' => [Message::welcome(), "'none' authentication, which is not allowed"];
    }

    #[DataProvider('weakerLogins')]
    public function testAServerThatAsksForAWeakerLoginGetsNothing(string $demand, string $reason): void
    {
        $server = FakeServer::start(static function (FakeConnection $client) use ($demand): void {
            $client->readStartup();
            $client->write($demand);
            self::assertSame('', $client->readToEnd());
        });

        $failure = self::failure(self::options($server)->with(['authentication' => [AuthenticationMethod::Scram]]));

        self::assertInstanceOf(AuthenticationException::class, $failure);
        self::assertStringContainsString($reason, $failure->getMessage());
        $server->stop();
    }

    /** @return iterable<string, array{string, string}> */
    public static function impostors(): iterable
    {
        yield 'another signature' => ['signature', 'It may be an impostor'];
        yield 'no signature' => ['none', 'It may be an impostor'];
        yield 'an absurd number of iterations' => ['iterations', '999999999 SCRAM iterations'];
        yield 'a nonce of another exchange' => ['nonce', 'does not match this client'];
    }

    #[DataProvider('impostors')]
    public function testAServerThatDoesNotKnowThePasswordIsNotEntered(string $how, string $reason): void
    {
        $server = FakeServer::start(static function (FakeConnection $client) use ($how): void {
            $client->readStartup();
            $client->write(Message::authenticationSasl(Scram::PLAIN));
            $scram = new ScramServer('guessed');
            $challenge = $scram->challenge(substr($client->expect('p'), \strlen(Scram::PLAIN) + 5));
            $client->write(Message::authenticationSaslContinue((string) match ($how) {
                'iterations' => preg_replace('~i=.*~', 'i=999999999', $challenge),
                'nonce' => preg_replace('~r=.....~', 'r=xxxxx', $challenge),
                default => $challenge,
            }));
            $final = $client->expect('p');
            $client->write(
                $how === 'none' ? '' : Message::authenticationSaslFinal($scram->signature($final)),
                Message::welcome(),
            );
            self::assertSame('', $client->readToEnd());
        });

        $failure = self::failure(self::options($server));

        self::assertInstanceOf(AuthenticationException::class, $failure);
        self::assertStringContainsString($reason, $failure->getMessage());
        $server->stop();
    }

    /** @return iterable<string, array{\Closure(FakeConnection): void, TlsMode}> */
    public static function steps(): iterable
    {
        yield 'TLS request' => [static function (): void {}, TlsMode::Prefer];
        yield 'login' => [static function (FakeConnection $client): void {
            $client->readStartup();
        }, TlsMode::Disable];
        yield 'SCRAM' => [static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(Message::authenticationSasl(Scram::PLAIN));
        }, TlsMode::Disable];
        yield 'set-up' => [static function (FakeConnection $client): void {
            $client->welcome();
        }, TlsMode::Disable];
    }

    /** @param \Closure(FakeConnection): void $script last actions of a server that is silent afterwards */
    #[DataProvider('steps')]
    public function testAConnectionThatIsCalledOffIsClosed(\Closure $script, TlsMode $tls): void
    {
        $server = FakeServer::start(static function (FakeConnection $client) use ($script): void {
            $script($client);
            $client->stall();
        });
        $cancellation = new DeferredCancellation();
        \Revolt\EventLoop::delay(0.05, static fn() => $cancellation->cancel());

        try {
            (new Connector(self::options($server)->with(['tls' => $tls])))->connect($cancellation->getCancellation());
            self::fail('It was not called off');
        } catch (CancelledException) {
            self::assertSame(1, $server->connections);
        }
        $server->stop();
    }

    public function testWhatWasCalledOffBeforeDoesNotBegin(): void
    {
        $server = self::trusting();
        $cancellation = new DeferredCancellation();
        $cancellation->cancel();

        try {
            (new Connector(self::options($server)))->connect($cancellation->getCancellation());
            self::fail('It was made');
        } catch (CancelledException) {
            $server->stop();
            self::assertSame(0, $server->connections);
        }
    }

    public function testANameThatIsNotFoundIsReported(): void
    {
        self::withResolver(static fn() => throw new DnsException('no such name'), static function (): void {
            self::assertFailure('db.test:5432: the look-up failed: no such name', self::options('db.test'));
        });
    }

    public function testANameThatNoHostHasIsReportedOnce(): void
    {
        $error = "Name resolution failed for 'db.test'; server returned error code: 3 (NXDomain)";
        $names = static fn() => throw new DnsException("All query attempts failed for db.test: {$error}, {$error}");
        self::withResolver($names, static function (): void {
            self::assertFailure(
                "db.test:5432: the look-up failed: no host has the name 'db.test'; check its spelling",
                self::options('db.test'),
            );
        });
    }

    public function testALookUpThatIsNotAnsweredEndsInTimeOrIsCalledOff(): void
    {
        $silent = static function (Cancellation $cancellation): array {
            delay(3600, cancellation: $cancellation);

            return [new DnsRecord('127.0.0.1', DnsRecord::A)];
        };
        self::withResolver($silent, static function (): void {
            self::assertFailure(
                "db.test:5432: no answer within 0.1 s, while waiting for the look-up of 'db.test'",
                self::options('db.test')->with(['connectTimeout' => 0.1]),
            );

            $cancellation = new DeferredCancellation();
            \Revolt\EventLoop::delay(0.01, static fn() => $cancellation->cancel());
            try {
                (new Connector(self::options('db.test')))->connect($cancellation->getCancellation());
                self::fail('It was not called off');
            } catch (CancelledException) {
            }
        });
    }

    public function testTheNextAddressOfANameIsTaken(): void
    {
        $server = self::trusting();
        $records = [new DnsRecord('127.0.0.9', DnsRecord::A), new DnsRecord('127.0.0.1', DnsRecord::A)];
        self::withResolver(static fn() => $records, static function () use ($server): void {
            $session = (new Connector(
                self::options("db.test:{$server->port}")->with(['tls' => TlsMode::Prefer]),
            ))->connect();
            self::assertSame("db.test:{$server->port} (127.0.0.1)", (string) $session->endpoint);
            fclose($session->stream);
        });
        $server->stop();
    }

    public function testAConnectionThatIsCutAnywhereIsAFailureOrAWholeSession(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $options = PostgresOptions::fromDsn(Cluster::shared()->tcpDsn(host: $proxy->host, port: (string) $proxy->port));
        fclose((new Connector($options))->connect()->stream);
        $all = $proxy->passed(Direction::ToClient);
        self::assertGreaterThan(300, $all);
        $failures = 0;
        for ($bytes = 0; $bytes < $all + 10; $bytes += max(1, intdiv($all, Scale::of(400)))) {
            $bytes % 2 === 0
                ? $proxy->closeAfter($bytes, Direction::ToClient)
                : $proxy->resetAfter($bytes, Direction::ToClient);
            try {
                fclose((new Connector($options))->connect()->stream);
                // The session setup varies in length.
                self::assertGreaterThan($all - 50, $bytes);
            } catch (ConnectionFailedException $failure) {
                self::assertStringContainsString('the server closed the connection', $failure->getMessage());
                ++$failures;
            }
        }
        self::assertGreaterThan(30, $failures);
        $proxy->stop();
    }

    public function testAConnectionIsMadeThroughANetworkThatPassesOneByteAtATime(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->slice(1);

        $session = (new Connector(PostgresOptions::fromDsn(
            Cluster::shared()->tcpDsn(host: $proxy->host, port: (string) $proxy->port),
        )))->connect();

        self::assertSame($proxy->port, $session->endpoint->host->port);
        fclose($session->stream);
        $proxy->stop();
    }

    public function testARequestToCancelThatIsNotDeliveredIsReported(): void
    {
        $silent = FakeServer::start(static fn(FakeConnection $client) => $client->stall());
        $closed = self::closedPort();
        foreach ([$closed => 'connection refused', $silent->port => 'no answer within 0.1 s'] as $port => $reason) {
            try {
                (new Connector(self::options($silent)->with(['connectTimeout' => 0.1])))->cancel(self::session($port));
                self::fail('It was delivered');
            } catch (ConnectionFailedException $failure) {
                self::assertStringContainsString("127.0.0.1:{$port}: {$reason}", $failure->getMessage());
            }
        }
        $silent->stop();
    }

    public function testARequestToCancelIsNotSentInTheClearForASessionThatIsEncrypted(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            self::assertSame(FakeConnection::SSL_REQUEST, $client->readRequest()[0]);
            $client->write('N');
            self::assertSame('', $client->readToEnd());
        });

        try {
            (new Connector(
                self::options($server)->with(['tls' => TlsMode::Prefer]),
            ))->cancel(self::session($server->port, tls: true));
            self::fail('It was sent');
        } catch (ConnectionFailedException $failure) {
            self::assertStringContainsString('does not offer TLS for the cancel request', $failure->getMessage());
        }
        $server->stop();
    }

    public function testARequestToCancelReturnsWhenTheServerHasTakenIt(): void
    {
        $taken = false;
        $server = FakeServer::start(static function (FakeConnection $client) use (&$taken): void {
            self::assertSame([FakeConnection::CANCEL_REQUEST, pack('N', 4711) . 'c0de'], $client->readRequest());
            delay(0.05);
            $taken = true;
        });

        (new Connector(self::options($server)))->cancel(self::session($server->port));

        self::assertTrue($taken);
        $server->stop();
    }

    public function testTheKeyOfASessionIsNotShown(): void
    {
        $session = self::session(1);

        self::assertStringNotContainsString('c0de', print_r($session, true) . var_export($session, true));
        fclose($session->stream);
    }

    private static function options(FakeServer|string $hosts): PostgresOptions
    {
        return new PostgresOptions(
            $hosts instanceof FakeServer ? [new PostgresHost($hosts->host, $hosts->port)] : $hosts,
            'app',
            self::PASSWORD,
        );
    }

    /** Starts a server that accepts every login. */
    private static function trusting(): FakeServer
    {
        return FakeServer::start(static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(self::welcome());
            $client->readToEnd();
        });
    }

    /**
     * Starts a server that does not answer.
     *
     * @param bool $closed set when the client has closed the connection
     * @param (\Closure(): void)|null $onStartup called when the client has begun its login
     */
    private static function silent(bool &$closed, ?\Closure $onStartup = null): FakeServer
    {
        return FakeServer::start(static function (FakeConnection $client) use (&$closed, $onStartup): void {
            $client->readStartup();
            if ($onStartup !== null) {
                $onStartup();
            }
            $client->readToEnd();
            $closed = true;
        });
    }

    private static function refusing(string $sqlState, string $message): FakeServer
    {
        return FakeServer::start(static function (FakeConnection $client) use ($sqlState, $message): void {
            $client->readStartup();
            $client->write(Message::errorResponse($sqlState, $message, severity: 'FATAL'));
        });
    }

    /** Returns the login messages of a server that is too old for session queries. */
    private static function welcome(): string
    {
        return Message::authenticationOk()
            . Message::parameterStatus('server_version', '13.0')
            . Message::backendKeyData(1, 2)
            . Message::readyForQuery();
    }

    private static function session(int $port, bool $tls = false): OpenedConnection
    {
        $stream = fopen('php://memory', 'r');
        \assert($stream !== false);

        return new OpenedConnection(
            $stream,
            4711,
            'c0de',
            [],
            new Endpoint(new PostgresHost('127.0.0.1', $port), '127.0.0.1'),
            $tls,
            '',
        );
    }

    private static function closedPort(): int
    {
        return (int) parse_url('tcp://' . Streams::unusedAddress(), \PHP_URL_PORT);
    }

    private static function failure(PostgresOptions $options): ConnectionFailedException|AuthenticationException
    {
        try {
            fclose((new Connector($options))->connect()->stream);
        } catch (ConnectionFailedException|AuthenticationException $failure) {
            self::assertStringNotContainsString(self::PASSWORD, $failure->getMessage());

            return $failure;
        }
        self::fail('A connection was made');
    }

    private static function assertFailure(string $reason, PostgresOptions $options): void
    {
        self::assertStringContainsString($reason, self::failure($options)->getMessage());
    }

    /**
     * @param \Closure(Cancellation): non-empty-list<DnsRecord> $resolve
     * @param \Closure(): void                                  $test
     */
    private static function withResolver(\Closure $resolve, \Closure $test): void
    {
        $before = dnsResolver();
        dnsResolver(new ScriptedNames($resolve));
        try {
            $test();
        } finally {
            dnsResolver($before);
        }
    }
}
