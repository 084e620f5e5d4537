<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Streams;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\delay;

/** Tests a pool whose server refuses connections, and whose borrowers misbehave. */
final class PoolFaultsTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    /** A server for at most five connections. */
    private static ?TemporaryPostgres $cluster = null;

    /** @var list<string> */
    private array $warnings = [];

    public static function setUpBeforeClass(): void
    {
        self::$cluster = Cluster::start(
            ['max_connections' => 5, 'superuser_reserved_connections' => 0, 'fsync' => false],
        );
    }

    public static function tearDownAfterClass(): void
    {
        self::$cluster?->stop();
        self::$cluster = null;
    }

    /** @return iterable<string, array{string, string}> SQLSTATE and message */
    public static function refusals(): iterable
    {
        yield 'full' => ['53300', 'sorry, too many clients already'];
        yield 'full pooler' => ['08P01', 'no more connections allowed (max_client_conn)'];
        yield 'starting' => ['57P03', 'the database system is starting up'];
        yield 'stopping' => ['57P03', 'the database system is shutting down'];
        yield 'ending' => ['57P01', 'terminating connection due to administrator command'];
    }

    #[DataProvider('refusals')]
    public function testAServerThatRefusesForAWhileIsTriedAgain(string $sqlState, string $message): void
    {
        $refuse = static function (FakeConnection $client) use ($sqlState, $message): void {
            $client->readStartup();
            $client->write(Message::errorResponse($sqlState, $message, severity: 'FATAL'));
        };
        $take = static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(Answers::welcome());
            (new FakeSession($client))->serve(Answers::first(['a' => Message::TEXT], ['here']));
        };
        $server = FakeServer::start($refuse, $take);
        $pool = new PostgresPool(Answers::options($server), 1);

        self::assertSame('here', $pool->query('SELECT')->value());
        self::assertSame(2, $server->connections);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAPoolerThatHasLostItsServerIsTriedAgain(): void
    {
        $takeOnce = static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(Answers::welcome());
            (new FakeSession($client))->next();
            $client->write(Answers::first(['a' => Message::TEXT], ['here']));
        };
        $server = FakeServer::start(
            $takeOnce,
            static function (FakeConnection $client): void {
                $client->readStartup();
                $client->write(self::poolerWithoutServer());
            },
            $takeOnce,
        );
        $pool = new PostgresPool(Answers::options($server), 1);

        self::assertSame('here', $pool->query('SELECT')->value());
        Eventually::holds(static fn(): bool => $pool->statistics()['lost_total'] === 1, 'the pool knows');
        self::assertSame('here', $pool->query('SELECT')->value());
        self::assertSame(3, $server->connections);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAPoolerThatNeverHadAServerIsReportedAtOnce(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(self::poolerWithoutServer());
        });
        $pool = new PostgresPool(Answers::options($server), 1, new PostgresPoolOptions(acquireTimeout: 60.0));

        $outcome = Outcome::of(static fn(): mixed => $pool->query('SELECT'));
        self::assertInstanceOf(ConnectionFailedException::class, $outcome, Outcome::describe($outcome));
        self::assertSame('08P01', $outcome->sqlState);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAPermanentRefusalWithoutAnSqlStateFailsAtOnceAlsoInAPoolThatHadAConnection(): void
    {
        $server = FakeServer::start(
            static function (FakeConnection $client): void {
                $client->readStartup();
                $client->write(Answers::welcome());
                (new FakeSession($client))->next();
                $client->write(Answers::first(['a' => Message::TEXT], ['here']));
            },
            static function (FakeConnection $client): void {
                $client->readStartup();
                $client->write(Message::negotiateProtocolVersion(0, '_pq_.option'));
            },
        );
        $closed = (int) parse_url('tcp://' . Streams::unusedAddress(), \PHP_URL_PORT);
        $hosts = [new PostgresHost($server->host, $server->port), new PostgresHost('127.0.0.1', $closed)];
        $pool = new PostgresPool(
            Answers::options($server)->with(['hosts' => $hosts]),
            1,
            new PostgresPoolOptions(acquireTimeout: 60.0),
        );

        self::assertSame('here', $pool->query('SELECT')->value());
        Eventually::holds(static fn(): bool => $pool->statistics()['lost_total'] === 1, 'the pool knows');
        $outcome = Outcome::of(static fn(): mixed => $pool->query('SELECT'));
        self::assertInstanceOf(ConnectionFailedException::class, $outcome, Outcome::describe($outcome));
        self::assertStringContainsString('does not speak version 3.0', $outcome->getMessage());
        $pool->close();
        unset($pool);
        $server->stop();
    }

    private static function poolerWithoutServer(): string
    {
        return Message::errorResponse(
            '08P01',
            'server login has been failing, try again later (server_login_retry)',
            severity: 'FATAL',
        );
    }

    #[DataProvider('refusals')]
    public function testAWaiterGetsTheReasonWhyTheServerRefused(string $sqlState, string $message): void
    {
        $server = FakeServer::start(static function (FakeConnection $client) use ($sqlState, $message): void {
            $client->readStartup();
            $client->write(Message::errorResponse($sqlState, $message, severity: 'FATAL'));
        });
        $pool = new PostgresPool(Answers::options($server), 3, new PostgresPoolOptions(acquireTimeout: 0.3));
        $at = hrtime(true);
        $outcomes = Outcome::ofAll(array_map(
            static fn(int $i): \Closure => static fn(): mixed => $pool->query("SELECT {$i}"),
            range(1, 5),
        ));

        self::assertLessThan(3.0, (hrtime(true) - $at) / 1e9);
        foreach ($outcomes as $outcome) {
            self::assertInstanceOf(PoolTimeoutException::class, $outcome, Outcome::describe($outcome));
            self::assertStringContainsString(
                "The last attempt failed: Could not connect to PostgreSQL: {$server->host}:{$server->port}: {$message}",
                $outcome->getMessage(),
            );
            $previous = $outcome->getPrevious();
            self::assertInstanceOf(ConnectionFailedException::class, $previous);
            self::assertSame($sqlState, $previous->sqlState);
        }
        self::assertSame(5, $pool->statistics()['timed_out_total']);
        self::assertSame(0, $pool->statistics()['waiting']);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAServerThatDoesNotAnswerIsNotMistakenForAFullPool(): void
    {
        $server = FakeServer::start(static fn(FakeConnection $client) => $client->stall());
        $pool = new PostgresPool(Answers::options($server), 1, new PostgresPoolOptions(acquireTimeout: 0.1));
        $outcome = Outcome::of(static fn(): mixed => $pool->acquire());

        self::assertInstanceOf(PoolTimeoutException::class, $outcome, Outcome::describe($outcome));
        self::assertStringContainsString(
            "at {$server->host}:{$server->port} within 0.1 s: the server has not answered",
            $outcome->getMessage(),
        );
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAServerThatRefusesIsAskedForOneConnectionAtATime(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(Message::errorResponse('53300', 'sorry, too many clients already', severity: 'FATAL'));
        });
        $pool = new PostgresPool(Answers::options($server), 8, new PostgresPoolOptions(acquireTimeout: 0.9));
        $outcomes = Outcome::ofAll(array_fill(0, 8, static fn(): mixed => $pool->acquire()));

        self::assertContainsOnlyInstancesOf(PoolTimeoutException::class, $outcomes);
        self::assertLessThanOrEqual(8 + 5, $server->connections);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testALoginThatIsRefusedIsNotRepeatedWhereNothingWaitsForIt(): void
    {
        $take = static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(Answers::welcome());
            (new FakeSession($client))->serve(Answers::first(['a' => Message::TEXT], ['here']));
        };
        $refuse = static function (FakeConnection $client): void {
            $client->readStartup();
            $client->write(Message::errorResponse('28P01', 'password authentication failed', severity: 'FATAL'));
        };
        $server = FakeServer::start($take, $refuse);
        $pool = new PostgresPool(Answers::options($server), 2, new PostgresPoolOptions(minConnections: 2));
        self::assertSame('here', $pool->query('SELECT')->value());
        delay(0.5); // more than twice the pause before another attempt

        self::assertSame(2, $server->connections);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAServerThatIsAwayIsWaitedFor(): void
    {
        $cluster = self::$cluster;
        self::assertNotNull($cluster);
        $pool = $this->poolOfAServerThatIsAway($cluster);
        $query = Async::run(static fn(): mixed => $pool->query('SELECT 1')->value());
        delay(0.05);
        $cluster->restart();

        self::assertSame(1, $query->await());
        $pool->close();
    }

    public function testAServerThatIsAwayIsWaitedForWithoutALimitAlsoWhereNothingElseGoesOn(): void
    {
        $cluster = self::$cluster;
        self::assertNotNull($cluster);
        $pool = $this->poolOfAServerThatIsAway($cluster, \INF);
        // The server must be away for a while, but no other event may keep the loop running.
        EventLoop::unreference(EventLoop::delay(0.2, $cluster->restart(...)));

        self::assertSame(1, $pool->query('SELECT 1')->value());
        $pool->close();
    }

    public function testAServerThatWasNeverReachedIsReportedAtOnceWithTheReason(): void
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($server);
        $address = (string) stream_socket_get_name($server, false);
        fclose($server);
        $pool = new PostgresPool(
            "postgres://nobody@{$address}/nothing?sslmode=disable",
            3,
            new PostgresPoolOptions(acquireTimeout: 60.0),
        );
        foreach (Outcome::ofAll(array_map(
            static fn(int $i): \Closure => static fn(): mixed => $pool->query("SELECT {$i}"),
            range(1, 5),
        )) as $outcome) {
            self::assertInstanceOf(ConnectionFailedException::class, $outcome, Outcome::describe($outcome));
            self::assertStringContainsString($address, $outcome->getMessage());
            self::assertStringContainsStringIgnoringCase('refused', $outcome->getMessage());
        }
        self::assertSame([0, 0], [$pool->statistics()['timed_out_total'], $pool->statistics()['waiting']]);
        $pool->close();
    }

    private function poolOfAServerThatIsAway(TemporaryPostgres $cluster, float $acquireTimeout = 20.0): PostgresPool
    {
        $pool = new PostgresPool($cluster->dsn(), 2, new PostgresPoolOptions(acquireTimeout: $acquireTimeout));
        $pool->query('SELECT 0');
        $cluster->kill();
        Eventually::holds(static fn(): bool => $pool->statistics()['lost_total'] === 1, 'the pool knows');

        return $pool;
    }

    public function testAServerWithoutRoomGivesAPlaceAsSoonAsOneIsFree(): void
    {
        $cluster = self::$cluster;
        self::assertNotNull($cluster);
        $others = array_map(
            static fn(): PostgresConnection => PostgresConnection::connect($cluster->dsn()),
            range(1, 4),
        );
        $pool = new PostgresPool($cluster->dsn(), 4);
        $values = Async::run(
            static fn(): array => Outcome::ofAll(array_map(
                static fn(int $i): \Closure
                    => static fn(): mixed => $pool->query("SELECT {$i} FROM pg_sleep(0.1)")->value(),
                range(1, 8),
            )),
        );
        delay(0.05);
        array_pop($others)->close();

        self::assertSame(range(1, 8), $values->await(), 'with the places that there are');
        foreach ($others as $other) {
            $other->close();
        }
        $pool->close();
    }

    public function testAPermanentRefusalFailsAllWaitersAtOnce(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(dbname: 'nowhere'), 3);
        $at = hrtime(true);
        foreach (Outcome::ofAll(array_map(
            static fn(int $i): \Closure => static fn(): mixed => $pool->query("SELECT {$i}"),
            range(1, 5),
        )) as $outcome) {
            self::assertInstanceOf(ConnectionFailedException::class, $outcome, Outcome::describe($outcome));
            self::assertSame('3D000', $outcome->sqlState);
        }
        self::assertLessThan(3.0, (hrtime(true) - $at) / 1e9);

        $pool = new PostgresPool(Cluster::shared()->tcpDsn(password: 'wrong', sslmode: 'disable'), 3);
        foreach (Outcome::ofAll(array_map(
            static fn(int $i): \Closure => static fn(): mixed => $pool->query("SELECT {$i}"),
            range(1, 5),
        )) as $outcome) {
            self::assertInstanceOf(AuthenticationException::class, $outcome, Outcome::describe($outcome));
            self::assertStringNotContainsString('wrong', (string) $outcome);
        }
        $pool->close();
    }

    public function testOneConnectionTooManyLeavesThoseThatThereAre(): void
    {
        // The server refuses the second and all further connections.
        $server = FakeServer::start(
            static function (FakeConnection $client): void {
                $client->readStartup();
                $client->write(Answers::welcome());
                $session = new FakeSession($client);
                for (;;) {
                    $session->next();
                    delay(0.02);
                    $session->complete('SELECT 1', ['a' => Message::TEXT], ['here']);
                }
            },
            static function (FakeConnection $client): void {
                $client->readStartup();
                $client->write(Message::errorResponse('53300', 'too many', severity: 'FATAL'));
            },
        );
        $pool = new PostgresPool(Answers::options($server), 10);
        $outcomes = Outcome::ofAll(array_map(
            static fn(int $i): \Closure => static fn(): mixed => $pool->query("SELECT {$i}")->value(),
            range(1, 20),
        ));

        self::assertSame(array_fill(0, 20, 'here'), $outcomes);
        self::assertGreaterThan(1, $server->connections);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testWhatABorrowerLeavesIsUndoneBeforeTheNextHasIt(): void
    {
        $pool = $this->pool(1);
        $look = static fn(): array
            => $pool->transaction(static fn(Transaction $transaction): array => $transaction->query(<<<'SQL'
            SELECT current_setting('work_mem'), current_setting('search_path'), current_user,
                current_setting('role'), current_setting('TimeZone'),
                (SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND pg_table_is_visible(oid)),
                (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
                (SELECT count(*) FROM pg_cursors), (SELECT count(*) FROM pg_listening_channels()),
                (SELECT count(*) FROM pg_prepared_statements WHERE from_sql), pg_backend_pid(),
                current_setting('client_connection_check_interval')
            SQL)->allNumeric()[0]);
        $before = $look();
        $changes = [
            "SET work_mem = '1MB'", 'SET search_path = pg_catalog', 'SET ROLE pg_monitor',
            'SET SESSION AUTHORIZATION pg_monitor', "SET TimeZone = 'Asia/Tokyo'",
            'CREATE TEMPORARY TABLE left_behind (a int)', 'SELECT pg_advisory_lock(7)',
            'SELECT pg_advisory_lock_shared(7)',
            'DECLARE left_open CURSOR WITH HOLD FOR SELECT 1', 'LISTEN left_behind',
            'PREPARE left_behind AS SELECT 1', "SELECT set_config('work_mem', '2MB', false)",
            'SET client_connection_check_interval = 0',
            // Changes that the text does not show.
            "DO $$ BEGIN PERFORM set_config('work_mem', '3MB', false); PERFORM pg_advisory_lock(8); "
                . 'CREATE TEMPORARY TABLE hidden (a int); END $$',
        ];
        foreach ($changes as $change) {
            foreach ([
                static fn(): mixed => $pool->query($change),
                static fn() => $pool->executeScript($change),
                static fn(): mixed => str_starts_with($change, 'DECLARE') ? null : $pool->transaction(
                    static fn(Transaction $transaction): mixed => $transaction->query($change),
                ),
                static function () use ($pool, $change): void {
                    $connection = $pool->acquire();
                    $connection->query($change);
                    $connection->release();
                },
            ] as $way => $do) {
                Outcome::of($do);
                self::assertSame($before, $look(), "{$change}, in way {$way}");
            }
        }
        self::assertSame([], $this->warnings);
        self::assertSame(1, $pool->statistics()['opened_total']);
        $pool->close();
    }

    /** Servers on Windows, for example, can't check during a statement whether the client is connected. */
    public function testAResetWorksOnAServerThatCanNotCheckItsClients(): void
    {
        if ((int) Cluster::ask('SHOW server_version_num')[0]['server_version_num'] < 140_000) {
            self::markTestSkipped('This server has no setting for the check');
        }
        $database = Cluster::newDatabase();
        Cluster::ask(<<<'SQL'
            SET allow_system_table_mods = on;
            ALTER FUNCTION pg_catalog.set_config(text, text, bool) RENAME TO set_config_really;
            CREATE FUNCTION pg_catalog.set_config(text, text, bool) RETURNS text LANGUAGE plpgsql AS $$
                BEGIN
                    IF $1 = 'client_connection_check_interval' THEN
                        RAISE 'client_connection_check_interval must be set to 0 on this platform.';
                    END IF;
                    RETURN set_config_really($1, $2, $3);
                END
            $$
            SQL, Cluster::shared()->dsn(dbname: $database));
        $pool = new PostgresPool(
            PostgresOptions::fromDsn(Cluster::shared()->dsn(dbname: $database))->with(['settings' => ['a.b' => 'c']]),
            1,
        );
        foreach ([1, 2] as $_) {
            $connection = $pool->acquire();
            self::assertSame('c', $connection->query("SELECT current_setting('a.b')")->value());
            $connection->execute("SET a.b = 'd'");
            $connection->release();
        }

        self::assertSame(1, $pool->statistics()['opened_total']);
        $pool->close();
    }

    public function testAConnectionThatAStoppedServerProcessDoesNotResetIsReplaced(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1, new PostgresPoolOptions(acquireTimeout: 20.0));
        $connection = $pool->acquire();
        $pid = $connection->backendPid();
        $connection->execute("SET work_mem = '1MB'");
        posix_kill($pid, \SIGSTOP);
        $connection->release();
        try {
            self::assertNotSame($pid, $pool->query('SELECT pg_backend_pid()')->value());
        } finally {
            posix_kill($pid, \SIGCONT);
        }
        $pool->close();
    }

    #[TestWith([0, false])]
    #[TestWith([1, true])]
    public function testATimeoutNamesTheConnectionsWhoseServerDoesNotConfirmACancellation(
        int $lent,
        bool $advisesMoreConnections,
    ): void {
        $options = new PostgresPoolOptions(acquireTimeout: 0.2);
        $pool = new PostgresPool(Cluster::shared()->dsn(), $lent + 1, $options);
        $borrowed = array_map(static fn(): PooledConnection => $pool->acquire(), array_fill(0, $lent + 1, null));
        $pid = $borrowed[$lent]->backendPid();
        $borrowed[$lent]->release();
        posix_kill($pid, \SIGSTOP);
        try {
            $cancellation = new DeferredCancellation();
            EventLoop::queue($cancellation->cancel(...));
            $cancelled = Outcome::of(
                static fn(): mixed => $pool->query('SELECT 1', [], $cancellation->getCancellation()),
            );
            self::assertInstanceOf(CancelledException::class, $cancelled, Outcome::describe($cancelled));
            $outcome = Outcome::of(static fn(): mixed => $pool->query('SELECT 1'));
        } finally {
            posix_kill($pid, \SIGCONT);
        }

        self::assertInstanceOf(PoolTimeoutException::class, $outcome, Outcome::describe($outcome));
        $message = $outcome->getMessage();
        self::assertStringContainsString('On 1 of the connections in use, the server has not confirmed', $message);
        self::assertSame($advisesMoreConnections, str_contains($message, 'raise maxConnections'), $message);
        $pool->kill();
    }

    public function testWhatAFunctionHasChangedForABorrowerIsUndoneToo(): void
    {
        $function = 'hidden_' . bin2hex(random_bytes(4));
        Cluster::ask(
            "CREATE FUNCTION {$function}() RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
                . "PERFORM set_config('work_mem', '1MB', false); PERFORM pg_advisory_lock(9); "
                . 'CREATE TEMPORARY TABLE hidden (a int); END $$',
        );
        $pool = $this->pool(1);
        $connection = $pool->acquire();
        $connection->query("SELECT {$function}()");
        self::assertSame('1MB', $connection->query("SELECT current_setting('work_mem')")->value());
        $connection->release();

        self::assertSame(
            [['4MB', 0, null]],
            $pool->query(
                "SELECT current_setting('work_mem'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
                    . "AND pid = pg_backend_pid()), to_regclass('pg_temp.hidden')::text",
            )->allNumeric(),
        );
        self::assertSame(1, $pool->statistics()['opened_total']);
        $pool->close();
        unset($pool, $connection);
        Cluster::ask("DROP FUNCTION {$function}()");
    }

    public function testATransactionThatABorrowerLeavesOpenIsRolledBackWithAWarning(): void
    {
        $table = 'left_' . bin2hex(random_bytes(4));
        Cluster::ask("CREATE TABLE {$table} (a int)");
        $pool = $this->pool(1);
        foreach (['a script' => false, 'a script that fails' => true] as $fails) {
            $connection = $pool->acquire();
            Outcome::of(
                static fn()
                    => $connection->executeScript(
                        "BEGIN; INSERT INTO {$table} VALUES (1)" . ($fails ? '; SELECT 1 / 0' : ''),
                    ),
            );
            $connection->release();
            self::assertSame([], $pool->query("SELECT a FROM {$table}")->allNumeric());
            self::assertSame(
                1,
                $pool->transaction(
                    static fn(Transaction $transaction): int
                        => $transaction->execute("INSERT INTO {$table} VALUES (2)"),
                ),
            );
            self::assertCount(1, $this->warnings);
            self::assertStringContainsString('A transaction was left open', $this->warnings[0]);
            $this->warnings = [];
            Cluster::ask("TRUNCATE {$table}");
        }
        $pool->close();
        unset($pool, $connection);
        Cluster::ask("DROP TABLE {$table}");
    }

    public function testTheCallbackOfAWarningMayUseThePool(): void
    {
        $warnings = [];
        $pool = null;
        $pool = new PostgresPool(
            Cluster::shared()->dsn(),
            1,
            new PostgresPoolOptions(
                acquireTimeout: 2.0,
                onWarning: static function (string $warning) use (&$pool, &$warnings): void {
                    $warnings[] = [$warning, Outcome::of(static fn(): mixed => $pool?->query('SELECT 2')->value())];
                },
            ),
        );
        $pool->executeScript('BEGIN');
        self::assertSame(1, $pool->query('SELECT 1')->value());
        Eventually::holds(static function () use (&$warnings): bool {
            return $warnings !== [];
        }, 'it is told', 1.0);

        self::assertSame(2, $warnings[0][1], Outcome::describe($warnings[0][1]));
        $pool->close();
    }

    public function testAConnectionThatLeaksIsReportedWithWhereItWasBorrowedAndComesBack(): void
    {
        $pool = $this->pool(1, 0.1);
        $held = $pool->acquire();
        $line = __LINE__ - 1;
        Eventually::holds(fn(): bool => $this->warnings !== [], 'it is reported');
        self::assertStringContainsString('was not released within 0.1 s', $this->warnings[0]);
        self::assertStringContainsString(__FILE__ . ":{$line}", $this->warnings[0]);
        self::assertSame(1, $held->query('SELECT 1')->value(), 'it is still his');

        unset($held);
        self::assertCount(2, $this->warnings);
        self::assertStringContainsString('was dropped without release()', $this->warnings[1]);
        self::assertStringContainsString(__FILE__ . ":{$line}", $this->warnings[1]);
        self::assertSame(2, $pool->query('SELECT 2')->value());
        self::assertSame(1, $pool->statistics()['opened_total']);
        $pool->close();
    }

    public function testALeakedConnectionComesBackAlsoIfTheReportFails(): void
    {
        $pool = new PostgresPool(
            Cluster::shared()->dsn(),
            1,
            new PostgresPoolOptions(
                acquireTimeout: 1.0,
                onWarning: static fn(string $warning) => throw new \DomainException($warning),
            ),
        );
        $outcome = Outcome::of(static function () use ($pool): void {
            $connection = $pool->acquire();
            unset($connection);
        });

        self::assertInstanceOf(\DomainException::class, $outcome);
        self::assertSame(1, $pool->query('SELECT 1')->value());
        $pool->close();
    }

    public function testAConnectionThatLeaksInACycleIsReportedWhenTheCycleGoes(): void
    {
        $pool = $this->pool(1);
        $cycle = new \stdClass();
        $cycle->itself = $cycle;
        $cycle->held = $pool->acquire();
        $cycle->held->query("SET work_mem = '1MB'");
        $waiting = Async::run(static fn(): mixed => $pool->query("SELECT current_setting('work_mem')")->value());
        unset($cycle);
        delay(0.01);
        gc_collect_cycles();

        self::assertSame('4MB', $waiting->await());
        self::assertCount(1, $this->warnings);
        $pool->close();
    }

    public function testAFiberThatHoldsAllConnectionsGetsATimeoutForAnother(): void
    {
        $pool = $this->pool(2, acquireTimeout: 0.2);
        $outcome = Outcome::of(
            static fn(): mixed => $pool->transaction(
                static fn(): mixed => $pool->transaction(static fn(): mixed => $pool->query('SELECT 1')->value()),
            ),
        );

        self::assertInstanceOf(PoolTimeoutException::class, $outcome, Outcome::describe($outcome));
        self::assertSame(2, $pool->query('SELECT 2')->value());
        $pool->close();
    }

    public function testWhatThrowsOutOfTheLoopIntoAWaitLosesNoConnection(): void
    {
        $pool = $this->pool(1, acquireTimeout: 20);
        $connection = PostgresConnection::connect(Cluster::shared()->dsn());
        $waits = [
            'for a connection' => static function () use ($pool): void {
                $pool->query('SELECT pg_sleep(0.2)');
            },
            'alone' => static function () use ($pool): void {
                $pool->acquire()->release();
            },
            'in a transaction' => static function () use ($pool): void {
                $pool->transaction(
                    static fn(Transaction $transaction): mixed => $transaction->query('SELECT pg_sleep(0.2)'),
                );
            },
            'for its turn' => static function () use ($connection): void {
                Async::run(static fn() => $connection->transaction(static fn() => delay(0.2)))->ignore();
                delay(0.01);
                $connection->query('SELECT 1');
            },
            'in a copy' => static function () use ($connection): void {
                iterator_to_array($connection->copyTo('COPY (SELECT pg_sleep(0.2)) TO STDOUT'));
            },
            'in a script' => static fn() => $connection->executeScript('SELECT pg_sleep(0.2)'),
            'to listen' => static fn() => $connection->listen('nothing')->current(),
        ];
        foreach ($waits as $where => $wait) {
            $busy = $pool->acquire();
            EventLoop::delay(0.05, static function () use ($busy): void {
                $busy->release();
            });
            EventLoop::delay(
                $where === 'alone' ? 0.02 : 0.1,
                static fn() => throw new \DomainException('of a callback'),
            );
            $outcome = Outcome::of($wait);
            self::assertStringContainsString('of a callback', Outcome::describe($outcome), $where);
            $at = hrtime(true);
            delay(0.15); // The claim: while abandoned work is in progress, nothing resumes this fiber.
            self::assertGreaterThan(
                0.14,
                (hrtime(true) - $at) / 1e9,
                "{$where}: nothing resumes what waits for something else",
            );
            self::assertSame(
                [1, 2],
                [$pool->query('SELECT 1')->value(), $connection->query('SELECT 2')->value()],
                $where,
            );
            self::assertSame(0, $pool->statistics()['waiting'], $where);
            unset($busy);
        }
        Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 0, 'all have come back');
        $pool->close();
        $connection->close();
    }

    public function testAPoolBehindANetworkThatDropsConnectionsAtAnyTimeGoesOn(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $pool = new PostgresPool(
            PostgresOptions::fromDsn(Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable')),
            4,
            new PostgresPoolOptions(acquireTimeout: 20),
        );
        $pool->query('SELECT 0');
        $until = hrtime(true) + 1_000_000_000;
        $dropping = EventLoop::repeat(0.03, static function () use ($proxy, $until): void {
            if (hrtime(true) < $until) {
                mt_rand(0, 1) === 0 ? $proxy->close() : $proxy->reset();
            }
        });
        $lost = 0;
        $work = static function () use ($pool, $until, &$lost): void {
            for ($i = 0; hrtime(true) < $until; ++$i) {
                $outcome = Outcome::of(static fn(): mixed => $pool->query('SELECT $1::int', [$i])->value());
                $outcome instanceof ConnectionLostException
                    ? ++$lost
                    : self::assertSame($i, $outcome, Outcome::describe($outcome));
            }
        };
        array_map(
            static fn(mixed $outcome) => self::assertNull($outcome, Outcome::describe($outcome)),
            Outcome::ofAll(array_fill(0, 20, $work)),
        );
        EventLoop::cancel($dropping);

        self::assertGreaterThan(0, $lost);
        Eventually::holds(
            static fn(): bool => Outcome::of(static fn(): mixed => $pool->query('SELECT 5')->value()) === 5,
            'the pool works',
        );
        $pool->close();
        $proxy->stop();
    }

    public function testTheTraceOfAFailedWaitContainsTheCaller(): void
    {
        $pool = $this->pool(1, acquireTimeout: 0.5);
        $held = $pool->acquire();
        $unreachable = new PostgresPool('postgresql://nobody@127.0.0.1:1/none?sslmode=disable', 1);
        $pools = [PoolTimeoutException::class => $pool, ConnectionFailedException::class => $unreachable];
        foreach ($pools as $class => $failing) {
            $outcome = Outcome::of(static fn(): mixed => async(self::selectOne(...), $failing)->await());
            self::assertInstanceOf($class, $outcome, Outcome::describe($outcome));
            self::assertContains('selectOne', array_column($outcome->getTrace(), 'function'));
        }
        $held->release();
        $pool->close();
        $unreachable->close();
    }

    private static function selectOne(PostgresPool $pool): mixed
    {
        return $pool->query('SELECT 1')->value();
    }

    private function pool(
        int $connections,
        ?float $leakDetectionThreshold = 60.0,
        float $acquireTimeout = 5.0,
    ): PostgresPool {
        return new PostgresPool(Cluster::shared()->dsn(), $connections, new PostgresPoolOptions(
            acquireTimeout: $acquireTimeout,
            leakDetectionThreshold: $leakDetectionThreshold,
            onWarning: function (string $warning): void {
                $this->warnings[] = $warning;
            },
        ));
    }
}
