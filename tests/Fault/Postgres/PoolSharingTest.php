<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\Protocol\BusyTime;
use Spindle\Postgres\Internal\Protocol\ServerTime;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Journal;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;
use function Amp\Future\await;

/** Tests short statements that share connections of a pool, when something delays or ends them. */
final class PoolSharingTest extends TidyTestCase
{
    use ComesToRest;
    use OwnDirectory;
    use UsesCluster;

    /** Short, unless its parameter makes it long. */
    private const QUERY = 'SELECT 1 AS n, pg_sleep($1::float8)';

    public function testABorrowerThatStopsWaitingBlocksNoOther(): void
    {
        $pool = $this->pool(1);
        $slow = Async::run(static fn(): mixed => $pool->query(self::QUERY, [0.3]));
        $source = new DeferredCancellation();
        $alone = Async::run(static fn(): mixed => $pool->acquire($source->getCancellation()));
        self::awaitWaiting($pool, 1);
        $sharing = self::shared($pool, 3);
        self::awaitWaiting($pool, 4);
        $source->cancel();

        await([$slow, ...$sharing], new TimeoutCancellation(3));
        self::assertInstanceOf(CancelledException::class, Outcome::of(static fn(): mixed => $alone->await()));
        $pool->close();
    }

    public function testABorrowerThatGetsAnotherThanItsReservedConnectionBlocksNoOther(): void
    {
        $pool = $this->pool(2);
        $borrowed = $pool->acquire();
        $slow = Async::run(static fn(): mixed => $pool->query(self::QUERY, [0.3]));
        Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 2, 'it is under way');
        $alone = Async::run(static fn(): mixed => $pool->acquire());
        self::awaitWaiting($pool, 1);
        $sharing = self::shared($pool, 3);
        self::awaitWaiting($pool, 4);
        $borrowed->release();
        $other = $alone->await(new TimeoutCancellation(3));

        await([$slow, ...$sharing], new TimeoutCancellation(3));
        $other->release();
        $pool->close();
    }

    public function testABorrowerGetsAConnectionWhileAnotherCanNotBeOpened(): void
    {
        $server = FakeServer::start(
            self::serving(static fn() => delay(0.001)),
            static fn(FakeConnection $client) => $client->stall(),
        );
        $pool = new PostgresPool(Answers::options($server), 2);
        self::learn($pool, 'SELECT');
        $stop = new DeferredCancellation();
        $flood = array_map(static fn(): Future => Async::run(static function () use ($pool, $stop): void {
            while (!$stop->isCancelled()) {
                $pool->query('SELECT');
            }
        }), range(1, 10));
        Eventually::holds(static fn(): bool => $pool->statistics()['opening'] === 1, 'another is being opened');

        $alone = Async::run(static fn(): mixed => $pool->acquire());
        $alone->await(new TimeoutCancellation(2))->release();
        $stop->cancel();
        await($flood);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testNoStatementJoinsAConnectionWhoseTestFails(): void
    {
        /** @var \ArrayObject<int, DeferredFuture<null>> $held */
        $held = new \ArrayObject();
        $server = FakeServer::start(self::serving(static function () use ($held): void {
            ($held[0] ?? null)?->getFuture()->await();
        }), self::serving(static fn() => null));
        $pool = new PostgresPool(Answers::options($server), 1, new PostgresPoolOptions(validateAfter: 0.05));
        self::learn($pool, 'SELECT');
        /** @var DeferredFuture<null> $deferred */
        $deferred = new DeferredFuture();
        $held[0] = $deferred;
        delay(0.06); // idle

        self::assertSame(
            array_fill(0, 10, 'here'),
            Outcome::ofAll(array_fill(0, 10, static fn(): mixed => $pool->query('SELECT')->value())),
        );
        self::assertSame([2, 0], [$pool->statistics()['opened_total'], $pool->statistics()['waiting']]);
        $deferred->complete();
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testCallsDuringTheTestOfAConnectionShareItAfterwards(): void
    {
        $server = FakeServer::start(self::serving(static fn() => null));
        $pool = new PostgresPool(
            Answers::options($server),
            5,
            new PostgresPoolOptions(maxWaiting: 0, validateAfter: 0.05),
        );
        self::learn($pool, 'SELECT');
        delay(0.06); // idle

        self::assertSame(
            array_fill(0, 40, 'here'),
            Outcome::ofAll(array_fill(0, 40, static fn(): mixed => $pool->query('SELECT')->value())),
        );
        self::assertSame(1, $server->connections);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testACancellationDuringTheTestOfAConnectionActsAtOnceAndLosesNone(): void
    {
        /** @var \ArrayObject<int, DeferredFuture<null>> $held */
        $held = new \ArrayObject();
        $server = FakeServer::start(self::serving(static function () use ($held): void {
            ($held[0] ?? null)?->getFuture()->await();
        }));
        $pool = new PostgresPool(Answers::options($server), 1, new PostgresPoolOptions(validateAfter: 0.05));
        self::learn($pool, 'SELECT');
        foreach ([
            static fn(DeferredCancellation $source): mixed => $pool->acquire($source->getCancellation()),
            static fn(DeferredCancellation $source): mixed => $pool->query('SELECT', [], $source->getCancellation()),
        ] as $ask) {
            /** @var DeferredFuture<null> $deferred */
            $deferred = new DeferredFuture();
            $held[0] = $deferred;
            delay(0.06); // idle
            $source = new DeferredCancellation();
            $asking = Async::run(static fn(): mixed => $ask($source));
            Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 1, 'it is tried');
            $source->cancel($reason = new \DomainException('enough'));
            $outcome = Outcome::of(static fn(): mixed => $asking->await(new TimeoutCancellation(0.5)));
            self::assertInstanceOf(CancelledException::class, $outcome);
            self::assertSame($reason, $outcome->getPrevious());
            $deferred->complete();

            self::assertSame('here', $pool->query('SELECT')->value());
        }
        self::assertSame([1, 0], [$server->connections, $pool->statistics()['lost_total']]);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAConnectionIsClosedIfTheCancelRequestForAPostponedStatementMayStillArrive(): void
    {
        /** @var \ArrayObject<int, DeferredFuture<null>> $held */
        $held = new \ArrayObject();
        $server = FakeServer::start(
            self::serving(static function () use ($held): void {
                ($held[0] ?? null)?->getFuture()->await();
            }),
            static function (FakeConnection $client) use ($held): void {
                self::assertSame(FakeConnection::CANCEL_REQUEST, $client->readRequest()[0]);
                $client->readToEnd(); // until the client does not wait for the server any more
                $held[0]?->complete();
            },
            self::serving(static fn() => null),
        );
        $pool = new PostgresPool(Answers::options($server)->with(['connectTimeout' => 0.3]), 1);
        self::learn($pool, 'SELECT');
        /** @var DeferredFuture<null> $deferred */
        $deferred = new DeferredFuture();
        $held[0] = $deferred;
        $ask = static fn(): mixed => $pool->query('SELECT')->value();

        self::assertSame(['here', 'here'], Outcome::ofAll([$ask, $ask]));
        self::assertSame('here', $ask());
        self::assertSame([3, 0], [$server->connections, $pool->statistics()['lost_total']]);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testAConnectionIsKeptIfTheCancelRequestForAPostponedStatementWasNotSent(): void
    {
        /** @var \ArrayObject<int, DeferredFuture<null>> $held */
        $held = new \ArrayObject();
        $server = FakeServer::startIn($this->path(), self::serving(static function () use ($held): void {
            ($held[0] ?? null)?->getFuture()->await();
        }));
        $options = new PostgresOptions($this->path(), 'test', database: 'test', logger: $journal = new Journal());
        $pool = new PostgresPool($options, 1);
        self::learn($pool, 'SELECT');
        rename($this->path('.s.PGSQL.5432'), $this->path('hidden'));
        /** @var DeferredFuture<null> $deferred */
        $deferred = new DeferredFuture();
        $held[0] = $deferred;
        $ask = static fn(): mixed => $pool->query('SELECT')->value();
        $asking = Async::run(static fn(): array => Outcome::ofAll([$ask, $ask]));
        $isLogged = static fn(): bool => str_contains($journal->text(), 'Sending a cancel request');
        Eventually::holds($isLogged, 'the statement is postponed');
        rename($this->path('hidden'), $this->path('.s.PGSQL.5432'));
        $deferred->complete();

        self::assertSame(['here', 'here'], $asking->await());
        self::assertSame('here', $ask());
        self::assertSame(1, $server->connections);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testNothingIsSentOnAConnectionThatIsKnownToBeLost(): void
    {
        do {
            [$outcomes, $seconds] = $this->outcomesOfAnEndAmongTen();
            // A query that begins later does not join the shared connection.
        } while ($seconds > 0.8 * ServerTime::SHORT_NANOSECONDS / 1e9);

        self::assertSame(
            ['the last', 'here'],
            array_shift($outcomes),
            'the next statement of whoever had the last answer',
        );
        foreach ($outcomes as $outcome) {
            self::assertIsArray($outcome);
            self::assertInstanceOf(ConnectionLostException::class, $outcome[0], 'it was under way');
            self::assertSame('here', $outcome[1], Outcome::describe($outcome[1]));
        }
    }

    /**
     * @return array{array<mixed>, float} outcomes of ten fibers with two statements each; seconds until all had begun
     */
    private function outcomesOfAnEndAmongTen(): array
    {
        /** @var \ArrayObject<string, bool> $is */
        $is = new \ArrayObject();
        $server = FakeServer::start(
            self::serving(static function (FakeConnection $client, FakeSession $session) use ($is): void {
                if (isset($is['ending'])) {
                    $client->write(
                        $session->head(['a' => Message::TEXT]),
                        Answers::rows(['the last']),
                        Message::commandComplete('SELECT 1'),
                        $session->end(),
                        Message::errorResponse('57P01', 'ends', severity: 'FATAL'),
                    );
                    $client->close();
                }
            }),
            self::serving(static fn() => null),
        );
        $pool = new PostgresPool(Answers::options($server), 1);
        self::learn($pool, 'SELECT');
        $is['ending'] = true;
        /** @var \ArrayObject<string, float> $seconds */
        $seconds = new \ArrayObject(['all have begun' => 0.0]);
        $at = hrtime(true);
        $ask = static fn(): mixed => Outcome::of(static fn(): mixed => $pool->query('SELECT')->value());
        $outcomes = Outcome::ofAll(array_fill(0, 10, static function () use ($ask, $seconds, $at): array {
            $seconds['all have begun'] = (hrtime(true) - $at) / 1e9;

            return [$ask(), $ask()];
        }));
        $pool->close();
        unset($pool);
        $server->stop();

        return [$outcomes, $seconds['all have begun'] ?? 0.0];
    }

    public function testATransactionThatNoTextShowsIsRolledBackBeforeTheNextStatement(): void
    {
        /** @var \ArrayObject<int, string> $asked */
        $asked = new \ArrayObject();
        /** @var \ArrayObject<string, bool> $is */
        $is = new \ArrayObject();
        $answer = static function (FakeConnection $_, FakeSession $session, string $sql) use ($asked, $is): void {
            $asked[] = $sql;
            $session->status = match ($sql) {
                'SELECT begun()' => isset($is['beginning']) ? 'T' : 'I',
                'ROLLBACK' => 'I',
                default => $session->status,
            };
        };
        $server = FakeServer::start(self::serving($answer));
        $warnings = [];
        $pool = new PostgresPool(
            Answers::options($server),
            1,
            new PostgresPoolOptions(onWarning: static function (string $warning) use (&$warnings): void {
                $warnings[] = $warning;
            }),
        );
        self::learn($pool, 'SELECT');
        self::learn($pool, 'SELECT begun()');
        $asked->exchangeArray([]);
        $is['beginning'] = true;
        await(array_map(
            static fn(): Future => Async::run(static fn(): mixed => $pool->query('SELECT begun()')),
            [1, 2],
        ));

        self::assertSame('here', $pool->query('SELECT')->value());
        self::assertSame(['SELECT begun()', 'SELECT begun()', 'ROLLBACK', 'SELECT'], $asked->getArrayCopy());
        self::assertCount(1, $warnings);
        self::assertStringContainsString('A transaction was left open', $warnings[0]);
        $pool->close();
        unset($pool);
        $server->stop();
    }

    public function testADistantServerDoesNotMakeAStatementSlow(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->delay(0.02);
        $pool = new PostgresPool(
            PostgresOptions::fromDsn(Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable')),
            1,
        );
        self::assertAllShare($pool, static function () use ($pool): void {
            for ($i = 0; $i < 3; ++$i) {
                $pool->query('SELECT $1::int', [$i]);
            }
        });
        $pool->close();
        $proxy->stop();
    }

    public function testWorkOfThisProcessDoesNotMakeAStatementSlow(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1);
        self::assertAllShare($pool, static function () use ($pool): void {
            for ($i = 0; $i < 10; ++$i) {
                $query = Async::run(static fn(): mixed => $pool->query('SELECT $1::int', [$i]));
                delay(0);
                delay(0);
                // The answer arrives long before it is read.
                $begin = BusyTime::until((int) hrtime(true));
                while (BusyTime::until((int) hrtime(true)) - $begin < 60_000_000) {
                    hash('sha256', 'work');
                }
                $query->await();
            }
        });
        $pool->close();
    }

    public function testAStatementThatWaitsForAConnectionIsSentOnceUnlessItIsCancelled(): void
    {
        $table = 'gone_' . bin2hex(random_bytes(4));
        Cluster::ask("CREATE TABLE {$table} (n int)");
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1);
        $insert = "INSERT INTO {$table} VALUES (\$1)";
        $pool->query($insert, [0]);
        $held = $pool->acquire();
        $source = new DeferredCancellation();
        $cancelled = Async::run(static fn(): mixed => $pool->query($insert, [1], $source->getCancellation()));
        $fiber = new \Fiber(static fn(): mixed => $pool->query($insert, [2]));
        $fiber->start();
        $last = Async::run(static fn(): mixed => $pool->query($insert, [3]));
        self::awaitWaiting($pool, 3);
        $source->cancel();
        unset($fiber);
        gc_collect_cycles();
        self::assertInstanceOf(CancelledException::class, Outcome::of(static fn(): mixed => $cancelled->await()));
        $held->release();
        $last->await();

        self::assertSame(
            [[0], [2], [3]],
            $pool->query("SELECT n FROM {$table} ORDER BY n")->allNumeric(),
            'a fiber that waits is not let go',
        );
        $pool->close();
        Cluster::ask("DROP TABLE {$table}");
    }

    /**
     * Asserts that fifty statements share the only connection. Retries, because the server may have been slow while it
     * was measured.
     *
     * @param \Closure(): void $learn
     */
    private static function assertAllShare(PostgresPool $pool, \Closure $learn): void
    {
        $waiting = 50;
        for ($attempt = 1; $waiting > 0 && $attempt <= 5; ++$attempt) {
            $learn();
            $futures = array_map(
                static fn(int $i): Future
                    => Async::run(static fn(): mixed => $pool->query('SELECT $1::int', [$i])->value()),
                range(1, 50),
            );
            delay(0);
            $waiting = $pool->statistics()['waiting'];
            $values = await($futures, new TimeoutCancellation(10));
            sort($values);
            self::assertSame(range(1, 50), $values);
        }
        self::assertSame(0, $waiting, 'all share the only connection');
    }

    /**
     * @param \Closure(FakeConnection, FakeSession, string): mixed $before called with each request, before it is
     *     answered
     *
     * @return \Closure(FakeConnection): void a server that answers everything
     */
    private static function serving(\Closure $before): \Closure
    {
        return static function (FakeConnection $client) use ($before): void {
            $client->readStartup();
            $client->write(Answers::welcome());
            $session = new FakeSession($client);
            for (; ;) {
                $sql = $session->next();
                $before($client, $session, $sql);
                if ($session->types === 'S') {
                    $client->write($session->end());
                } elseif ($sql === 'ROLLBACK') {
                    $session->complete('ROLLBACK');
                } else {
                    $session->complete('SELECT 1', ['a' => Message::TEXT], ['here']);
                }
            }
        };
    }

    /** @return list<Future<mixed>> futures of $count short statements */
    private static function shared(PostgresPool $pool, int $count): array
    {
        return array_map(
            static fn(): Future => Async::run(static fn(): mixed => $pool->query(self::QUERY, [0.0])),
            range(1, $count),
        );
    }

    /**
     * Repeats a statement until the pool knows it as short, however busy the machine is.
     *
     * @param list<mixed> $parameters
     */
    private static function learn(PostgresPool $pool, string $sql, array $parameters = []): void
    {
        // After one slow run, which a busy machine may cause, fifty short ones are needed.
        for ($short = 0; $short < 51; ++$short) {
            $at = hrtime(true);
            $pool->query($sql, $parameters);
            $short = hrtime(true) - $at > 45_000_000 ? -1 : $short;
        }
    }

    private static function awaitWaiting(PostgresPool $pool, int $count): void
    {
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === $count, "{$count} wait");
    }

    /** Returns a pool that knows that the query is short. */
    private function pool(int $connections): PostgresPool
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), $connections);
        self::learn($pool, self::QUERY, [0.0]);

        return $pool;
    }
}
