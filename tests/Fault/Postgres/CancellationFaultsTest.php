<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\NullCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/**
 * Tests that a cancellation at any moment frees the caller at once, leaves nothing half done and hits no other
 * statement.
 */
final class CancellationFaultsTest extends TidyTestCase
{
    use ComesToRest;
    use OwnDirectory;
    use UsesCluster;

    private string $table;

    protected function setUp(): void
    {
        mt_srand(Scale::seed());
        $this->table = 'cancelled_' . bin2hex(random_bytes(4));
        Cluster::ask("CREATE TABLE {$this->table} (a int)");
    }

    protected function tearDown(): void
    {
        Cluster::ask(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = '{$this->table}'::regclass "
                . 'AND pid <> pg_backend_pid()',
        );
        Cluster::ask("DROP TABLE {$this->table}");
    }

    protected function deadline(): int
    {
        return 120 + Scale::of(100);
    }

    /** @return iterable<string, array{\Closure(string): PostgresLink}> */
    public static function links(): iterable
    {
        yield 'a connection' => [static fn(string $dsn): PostgresLink => PostgresConnection::connect($dsn)];
        yield 'a pool of one' => [
            static fn(string $dsn): PostgresLink
                => new PostgresPool($dsn, 1, new PostgresPoolOptions(acquireTimeout: 20)),
        ];
        yield 'a pool' => [
            static fn(string $dsn): PostgresLink
                => new PostgresPool($dsn, 4, new PostgresPoolOptions(acquireTimeout: 20)),
        ];
    }

    /** @param \Closure(string): PostgresLink $make */
    #[DataProvider('links')]
    public function testNoCancellationHitsAnotherQueryWheneverItComes(\Closure $make): void
    {
        $link = $make(Cluster::shared()->dsn());
        $cancelled = 0;
        $rounds = 0;
        foreach (Scale::rounds(0.3, 50) as $i) {
            $rounds = $i;
            $cancellation = new DeferredCancellation();
            // Cancelled at a random moment: before it is sent, while it runs, as it ends and after that.
            $work = Async::run(
                static fn(): mixed => Outcome::of(
                    static fn(): mixed => $link->query(
                        'SELECT 5 AS five, pg_sleep($1)',
                        [mt_rand(0, 2000) / 1e6],
                        $cancellation->getCancellation(),
                    )->one(),
                ),
            );
            EventLoop::delay(mt_rand(0, 2500) / 1e6, static fn() => $cancellation->cancel());
            $others = mt_rand(0, 3);
            // A late cancel request hits one of these statements.
            $seconds = mt_rand(0, 1) / 1000;
            $other = static fn(int $number): \Closure => static fn(): mixed => $link
                ->query("SELECT {$number} + {$i} FROM pg_sleep({$seconds})")->value();
            $outcomes = Outcome::ofAll(array_map($other, range(0, $others)));
            self::assertSame(
                array_map(static fn(int $number): int => $number + $i, range(0, $others)),
                $outcomes,
                Outcome::describe($outcomes),
            );
            $outcome = $work->await();
            $outcome instanceof CancelledException
                ? ++$cancelled
                : self::assertSame(['five' => 5, 'pg_sleep' => ''], $outcome, Outcome::describe($outcome));
            self::assertSame($i, $link->query('SELECT $1::int', [$i])->value());
            $cancellation->cancel();
        }
        self::assertGreaterThan($rounds / 10, $cancelled);
    }

    /** @param \Closure(string): PostgresLink $make */
    #[DataProvider('links')]
    public function testATransactionIsWholeOrNotThereWheneverItIsCancelled(\Closure $make): void
    {
        $link = $make(Cluster::shared()->dsn());
        $cancelled = 0;
        $rounds = 0;
        foreach (Scale::rounds(0.3, 30) as $i) {
            $rounds = $i;
            $cancellation = new DeferredCancellation();
            $token = $cancellation->getCancellation();
            EventLoop::delay(mt_rand(0, 6000) / 1e6, static fn() => $cancellation->cancel());
            $outcome = Outcome::of(
                fn(): mixed => $link->transaction(function (Transaction $transaction) use ($i, $token): int {
                    $transaction->execute("INSERT INTO {$this->table} VALUES ({$i})");
                    $transaction->transaction(
                        fn(Transaction $inner): int
                            => $inner->execute(
                                "INSERT INTO {$this->table} SELECT {$i} FROM pg_sleep(0.001)",
                                [],
                                $token,
                            ),
                        cancellation: $token,
                    );

                    return $transaction->execute("INSERT INTO {$this->table} VALUES ({$i})", [], $token);
                }, cancellation: $token),
            );
            $rows = $link->query("SELECT count(*) FROM {$this->table} WHERE a = {$i}")->value();
            if ($outcome instanceof CancelledException) {
                ++$cancelled;
                self::assertSame(0, $rows);
            } else {
                self::assertSame(1, $outcome, Outcome::describe($outcome));
                self::assertSame(3, $rows);
            }
        }
        self::assertGreaterThan($rounds / 10, $cancelled);
    }

    /** @return iterable<string, array{\Closure(PostgresLink, string, Cancellation): mixed}> */
    public static function transfers(): iterable
    {
        yield 'a stream' => [static function (PostgresLink $link, string $table, Cancellation $cancellation): int {
            $rows = 0;
            foreach ($link->stream(
                "SELECT i, repeat('x', 500) FROM generate_series(1, 20000) AS i",
                [],
                $cancellation,
            ) as $row) {
                self::assertSame(++$rows, $row['i']);
                if ($rows % 500 === 0) {
                    delay(0);
                }
            }

            return $rows;
        }];
        yield 'a stream that writes' => [
            static function (PostgresLink $link, string $table, Cancellation $cancellation): int {
                $rows = 0;
                foreach ($link->stream(
                    "INSERT INTO {$table} SELECT i FROM generate_series(1, 20000) AS i RETURNING a",
                    [],
                    $cancellation,
                ) as $row) {
                    self::assertSame(++$rows, $row['a']);
                    if ($rows % 500 === 0) {
                        delay(0);
                    }
                }

                return $rows;
            },
        ];
        yield 'a copy out' => [static function (PostgresLink $link, string $table, Cancellation $cancellation): int {
            $rows = 0;
            foreach ($link->copyTo(
                "COPY (SELECT i, repeat('x', 200) FROM generate_series(1, 20000) AS i) TO STDOUT",
                $cancellation,
            ) as $line) {
                self::assertSame(++$rows . "\t" . str_repeat('x', 200) . "\n", $line);
                if ($rows % 500 === 0) {
                    delay(0);
                }
            }

            return $rows;
        }];
        yield 'a copy in' => [
            static fn(PostgresLink $link, string $table, Cancellation $cancellation): int
                => $link->copyFrom("COPY {$table} FROM STDIN", (static function (): \Generator {
                    for ($i = 1; $i <= 20_000; ++$i) {
                        yield "{$i}\n";
                        if ($i % 500 === 0) {
                            delay(0);
                        }
                    }
                })(), $cancellation),
        ];
        yield 'a script' => [static function (PostgresLink $link, string $table, Cancellation $cancellation): int {
            $link->executeScript(
                "INSERT INTO {$table} SELECT i FROM generate_series(1, 10000) AS i; SELECT pg_sleep(0.002); "
                    . "INSERT INTO {$table} SELECT i FROM generate_series(10001, 20000) AS i",
                $cancellation,
            );

            return 20_000;
        }];
    }

    /** @param \Closure(PostgresLink, string, Cancellation): mixed $transfer */
    #[DataProvider('transfers')]
    public function testATransferIsWholeOrNotThereWheneverItIsCancelled(\Closure $transfer): void
    {
        $cancelled = 0;
        foreach (self::links() as $name => [$make]) {
            $link = $make(Cluster::shared()->dsn());
            $at = hrtime(true);
            $transfer($link, $this->table, new NullCancellation());
            $microseconds = intdiv(hrtime(true) - $at, 1000);
            $link->execute("TRUNCATE {$this->table}");
            foreach (Scale::rounds(0.1, 3) as $_) {
                $cancellation = new DeferredCancellation();
                EventLoop::delay(mt_rand(0, $microseconds) / 1e6, static fn() => $cancellation->cancel());
                $at = hrtime(true);
                $outcome = Outcome::of(fn(): mixed => $transfer($link, $this->table, $cancellation->getCancellation()));
                $rows = $link->query("SELECT count(*) FROM {$this->table}")->value();
                if ($outcome instanceof CancelledException) {
                    ++$cancelled;
                    self::assertContains($rows, [0, 20_000], $name); // the COPY may have completed
                    self::assertLessThan(5.0, (hrtime(true) - $at) / 1e9);
                } else {
                    self::assertSame(20_000, $outcome, Outcome::describe($outcome));
                    self::assertContains($rows, [0, 20_000]);
                }
                $link->execute("TRUNCATE {$this->table}");
            }
        }
        unset($link);
        self::assertGreaterThan(0, $cancelled);
    }

    public function testNoConnectionIsLostToACancelledWaitForIt(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 2, new PostgresPoolOptions(acquireTimeout: 20));
        $work = [];
        $outcomes = ['cancelled' => 0, 'done' => 0];
        $cancellations = []; // cancelled after the first outcome, so a slow machine has one
        for ($i = Scale::of(1000); $i > 0; --$i) {
            $work[] = Async::run(static function () use ($pool, $i, &$outcomes, &$cancellations): void {
                $cancellations[] = $cancellation = new DeferredCancellation();
                $token = $cancellation->getCancellation();
                try {
                    $value = match (mt_rand(0, 3)) {
                        0 => $pool->query("SELECT {$i}", [], $token)->value(),
                        1 => $pool->query('SELECT $1::int', [$i], $token)->value(),
                        2 => $pool->transaction(
                            static fn(Transaction $transaction): mixed => $transaction->query("SELECT {$i}")->value(),
                            cancellation: $token,
                        ),
                        default => self::borrowed($pool, $i, $token),
                    };
                    self::assertSame($i, $value);
                    ++$outcomes['done'];
                    foreach (array_splice($cancellations, 0) as $other) {
                        EventLoop::delay(
                            mt_rand(0, 300_000) / 1e6,
                            static function () use ($other): void {
                                $other->cancel();
                            },
                        );
                    }
                } catch (CancelledException) {
                    ++$outcomes['cancelled'];
                }
            });
        }
        foreach ($work as $one) {
            $one->await();
        }

        self::assertSame(Scale::of(1000), $outcomes['cancelled'] + $outcomes['done']);
        self::assertGreaterThan(0, $outcomes['cancelled']);
        self::assertGreaterThan(0, $outcomes['done']);
        Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 0, 'all have come back');
        self::assertSame([0, 0], [$pool->statistics()['waiting'], $pool->statistics()['timed_out_total']]);
        $both = [$pool->acquire(), $pool->acquire()];
        $pid = static fn(PooledConnection $one): mixed => $one->query('SELECT pg_backend_pid()')->value();
        self::assertNotSame(...array_map($pid, $both)); // both connections are open
        array_map(static fn(PooledConnection $one) => $one->release(), $both);
    }

    private static function borrowed(PostgresPool $pool, int $number, Cancellation $cancellation): mixed
    {
        $connection = $pool->acquire($cancellation);
        try {
            return $connection->query("SELECT {$number}")->value();
        } finally {
            $connection->release();
        }
    }

    public function testWhatWasCalledOffBeforeIsNotSent(): void
    {
        $cancellation = new DeferredCancellation();
        $cancellation->cancel();
        $token = $cancellation->getCancellation();
        $pulled = 0;
        $rows = static function () use (&$pulled): \Generator {
            ++$pulled;
            yield "1\n";
        };
        foreach ([
            PostgresConnection::connect(Cluster::shared()->dsn()),
            new PostgresPool(Cluster::shared()->dsn(), 1),
        ] as $link) {
            $calls = [
                fn(): mixed => $link->query("INSERT INTO {$this->table} VALUES (1)", [], $token),
                fn(): mixed => $link->execute("INSERT INTO {$this->table} VALUES (\$1)", [1], $token),
                fn(): mixed
                    => iterator_to_array($link->stream(
                        "INSERT INTO {$this->table} VALUES (1) RETURNING a",
                        [],
                        $token,
                    )),
                fn(): mixed => $link->copyFrom("COPY {$this->table} FROM STDIN", $rows(), $token),
                fn(): mixed => iterator_to_array($link->copyTo('COPY (SELECT 1) TO STDOUT', $token)),
                function () use ($link, $token): void {
                    $link->executeScript("INSERT INTO {$this->table} VALUES (1)", $token);
                },
                fn(): string => $link->transaction(static function () use (&$pulled): string {
                    ++$pulled;

                    return 'done';
                }, cancellation: $token),
            ];
            foreach ($calls as $number => $call) {
                self::assertInstanceOf(CancelledException::class, Outcome::of($call), "call {$number}");
            }
            self::assertSame([], $link->query("SELECT a FROM {$this->table}")->all());
        }
        unset($link, $calls);
        self::assertSame(0, $pulled);
    }

    public function testALostCancelRequestIsRepeatedWhileItsCallerContinues(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $dsn = Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable');
        foreach ([
            PostgresConnection::connect($dsn),
            new PostgresPool($dsn, 1, new PostgresPoolOptions(acquireTimeout: 20)),
        ] as $link) {
            $link->query('SELECT 1');
            $cancellation = new DeferredCancellation();
            $work = Async::run(
                static fn(): mixed
                    => Outcome::of(
                        static fn(): mixed => $link->query('SELECT pg_sleep(20)', [], $cancellation->getCancellation()),
                    ),
            );
            $behind = Async::run(static fn(): mixed => $link->query('SELECT 2')->value());
            self::awaitBusy('SELECT pg_sleep(20)');
            $connections = $proxy->connections;
            $proxy->refuse();
            $cancellation->cancel();
            $at = hrtime(true);

            self::assertInstanceOf(CancelledException::class, $work->await());
            self::assertLessThan(3.0, (hrtime(true) - $at) / 1e9, 'seconds');
            Eventually::holds(static fn(): bool => $proxy->connections > $connections + 1, 'it was asked again');
            $proxy->resume();
            self::assertSame(2, $behind->await());
            self::assertLessThan(5.0, (hrtime(true) - $at) / 1e9, 'seconds');
        }
        unset($link);
        $proxy->stop();
    }

    public function testAnUndeliverableCancelRequestEndsTheConnectionWhileItsCallerContinues(): void
    {
        $server = FakeServer::startIn($this->path(), self::silent(...));
        $connection = PostgresConnection::connect(new PostgresOptions($this->path(), 'test', database: 'test'));
        $cancellation = new DeferredCancellation();
        $work = Async::run(
            static fn(): mixed
                => Outcome::of(
                    static fn(): mixed => $connection->query('SELECT 1', [], $cancellation->getCancellation()),
                ),
        );
        $behind = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $connection->query('SELECT 2')));
        delay(0);
        unlink($this->path('.s.PGSQL.5432'));
        $cancellation->cancel();
        $at = hrtime(true);

        self::assertInstanceOf(CancelledException::class, $work->await());
        $lost = $behind->await();
        self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
        self::assertStringContainsString(
            'the request to stop a cancelled statement failed, so the client closed the connection',
            $lost->getMessage(),
        );
        self::assertInstanceOf(ConnectionFailedException::class, $lost->getPrevious());
        self::assertTrue($connection->isClosed());
        self::assertLessThan(5.0, (hrtime(true) - $at) / 1e9, 'seconds');
        unset($connection);
        $server->stop();
    }

    /** Logs a client in, and never answers its statements. */
    private static function silent(FakeConnection $client): void
    {
        $client->readStartup();
        $client->write(Answers::welcome());
        $client->stall();
    }

    #[Group('quiet')]
    public function testACancelRequestThatIsNeverAcceptedEndsTheConnectionInTime(): void
    {
        $other = null;
        $server = FakeServer::start(
            self::silent(...),
            static function (FakeConnection $client) use (&$other): void {
                $other = $client->readRequest();
                $client->stall();
            },
        );
        $connection = PostgresConnection::connect(Answers::options($server)->with(['connectTimeout' => 0.3]));
        $cancellation = new DeferredCancellation();
        $work = Async::run(
            static fn(): mixed
                => Outcome::of(
                    static fn(): mixed => $connection->query('SELECT 1', [], $cancellation->getCancellation()),
                ),
        );
        $behind = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $connection->query('SELECT 2')));
        delay(0.01);
        $at = hrtime(true);
        $cancellation->cancel();

        self::assertInstanceOf(CancelledException::class, $work->await());
        self::assertLessThan(3.0, (hrtime(true) - $at) / 1e9, 'seconds');
        $lost = $behind->await();
        self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
        self::assertEqualsWithDelta(0.3, (hrtime(true) - $at) / 1e9, 0.2, 'seconds');
        self::assertSame([FakeConnection::CANCEL_REQUEST, pack('NN', 4711, 815)], $other);
        unset($connection);
        $server->stop();
    }

    #[Group('full')] // takes ten seconds
    public function testAServerThatTakesACancelRequestAndGoesOnIsGivenUp(): void
    {
        $server = FakeServer::start(
            self::silent(...),
            static function (FakeConnection $client): void {
                $client->readRequest();
            },
        );
        $connection = Answers::connect($server);
        $cancellation = new DeferredCancellation();
        $work = Async::run(
            static fn(): mixed
                => Outcome::of(
                    static fn(): mixed => $connection->query('SELECT 1', [], $cancellation->getCancellation()),
                ),
        );
        delay(0.01);
        $cancellation->cancel();
        self::assertInstanceOf(CancelledException::class, $work->await());

        $lost = Outcome::of(static fn(): mixed => $connection->query('SELECT 2'));
        self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
        self::assertStringContainsString('the server did not stop a cancelled statement', $lost->getMessage());
        unset($connection);
        $server->stop();
    }

    private static function awaitBusy(string $sql): void
    {
        Eventually::holds(
            static fn(): bool
                => Cluster::ask("SELECT FROM pg_stat_activity WHERE state = 'active' AND query = '{$sql}'") !== [],
            'the server works',
        );
    }
}
