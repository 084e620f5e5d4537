<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\Future;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;

use function Amp\delay;

/**
 * Tests lost connections, and servers that come back.
 *
 * @phpstan-require-extends PoolContract
 */
trait ReplacesConnections
{
    public function testAConnectionThatIsToWriteAndDoesNotIsReplaced(): void
    {
        $cluster = Cluster::start();
        $defaultTo = static function (string $value) use ($cluster): void {
            Cluster::ask("ALTER SYSTEM SET default_transaction_read_only = {$value}", $cluster->dsn());
            Cluster::ask('SELECT pg_reload_conf()', $cluster->dsn());
        };
        Cluster::ask('CREATE TABLE t (i int)', $cluster->dsn());
        $insert = static fn(PostgresLink $link): int => $link->execute('INSERT INTO t VALUES (1)');
        $show = 'SHOW transaction_read_only';
        foreach ([
            [TargetSessionAttrs::ReadWrite, 1],
            [TargetSessionAttrs::Primary, 1],
            [TargetSessionAttrs::Any, 0],
        ] as [$target, $replaced]) {
            foreach ([$insert, static fn(PostgresPool $pool): mixed => $pool->transaction($insert)] as $write) {
                $options = PostgresOptions::fromDsn($cluster->dsn())->with(['targetSessionAttrs' => $target]);
                $pool = new PostgresPool($options, 1);
                self::assertSame(1, $write($pool));
                $defaultTo('on');
                Eventually::holds(
                    static fn(): bool => $pool->query($show)->value() === 'on',
                    'the server is read-only',
                );
                self::thrown(QueryException::class, static fn(): mixed => $write($pool));
                Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 0, 'the pool has checked it');
                self::assertSame(1 - $replaced, $pool->statistics()['idle'], $target->value);
                $defaultTo('off');
                foreach ([
                    static fn(): mixed => Cluster::ask($show, $cluster->dsn())[0]['transaction_read_only'],
                    static fn(): mixed => $pool->query($show)->value(),
                ] as $ask) {
                    Eventually::holds(static fn(): bool => $ask() === 'off', 'the server is not read-only');
                }
                self::assertSame(1, $write($pool));
                self::assertSame(1 + $replaced, $pool->statistics()['opened_total'], $target->value);
                $pool->close();
            }
        }
    }

    public function testAConnectionIsKeptWhenOnlyItsTransactionIsReadOnly(): void
    {
        $table = self::table('i int');
        $insert = static fn(PostgresLink $link): int => $link->execute("INSERT INTO {$table} VALUES (1)");
        foreach ([TargetSessionAttrs::ReadWrite, TargetSessionAttrs::Primary] as $target) {
            $pool = new PostgresPool($this->options(targetSessionAttrs: $target), 1);
            self::thrown(
                QueryException::class,
                static fn(): mixed => $pool->transaction(static function (Transaction $transaction) use ($insert): int {
                    $transaction->query('SET TRANSACTION READ ONLY');

                    return $insert($transaction);
                }),
            );
            self::assertSame(1, $insert($pool));
            $connection = $pool->acquire();
            $connection->query('SET default_transaction_read_only = on');
            self::thrown(QueryException::class, static fn(): int => $insert($connection));
            $connection->release();
            self::assertSame(1, $insert($pool));
            self::assertSame(1, $pool->statistics()['opened_total'], $target->value);
            $pool->close();
        }
    }

    public function testAnIdleConnectionThatIsLostIsReplaced(): void
    {
        $pool = $this->pool(1);
        $pid = self::integer($pool->query('SELECT pg_backend_pid()')->value());
        self::terminate($pid);
        Eventually::holds(static fn(): bool => $pool->statistics()['lost_total'] === 1, 'the pool knows');

        self::assertSame([0, 0], [$pool->statistics()['in_use'], $pool->statistics()['idle']]);
        self::assertNotSame($pid, $pool->query('SELECT pg_backend_pid()')->value());
    }

    public function testConnectionsThatTheServerEndsSoonAreReplacedAfterAPause(): void
    {
        $settings = ['idle_session_timeout' => '50'];
        $pool = new PostgresPool($this->options(settings: $settings), 2, new PostgresPoolOptions(minConnections: 2));
        $startedAt = microtime(true);
        self::assertSame(1, $pool->query('SELECT 1')->value());
        Eventually::holds(
            static fn(): bool => $pool->statistics()['opened_total'] >= 8,
            'the pool has opened its two connections four times',
        );
        self::assertGreaterThan(0.6, microtime(true) - $startedAt);
        // A query does not wait for the end of the pause.
        Eventually::holds(static fn(): bool => $pool->statistics()['idle'] === 0, 'both connections are lost');
        $query = Async::run(static fn(): mixed => $pool->query('SELECT 1')->value());
        delay(0);
        self::assertGreaterThan(0, $pool->statistics()['opening']);
        self::assertSame(1, $query->await());
        $pool->close();
    }

    public function testAConnectionIsTriedBeforeItIsUsedAfterATimeOfIdleness(): void
    {
        foreach ([
            static fn(PostgresPool $pool): mixed => $pool->query('SELECT pg_backend_pid()')->value(),
            static fn(PostgresPool $pool): mixed => $pool->transaction(
                static fn(Transaction $transaction): mixed => $transaction->query('SELECT pg_backend_pid()')->value(),
            ),
        ] as $ask) {
            $pool = $this->pool(1, validateAfter: 0.0);
            $ask($pool);
            $pid = self::integer($ask($pool));
            self::terminate($pid); // and no code runs the event loop
            self::assertNotSame($pid, $ask($pool));
            self::assertSame(2, $pool->statistics()['opened_total']);
        }
    }

    public function testALossFailsRunningCallsAndNothingElse(): void
    {
        $pool = $this->pool(2);
        $gate = new Gate();
        $futures = array_map(
            static fn(int $i): Future
                => Async::run(static fn(): mixed => $pool->query($gate->statement("{$i}"))->value()),
            range(1, 10),
        );
        $gate->awaitStatements(2);
        foreach (array_keys($this->backends()) as $pid) {
            self::terminate($pid);
        }
        $gate->awaitStatements(2); // statements of the waiting fibers
        $gate->open();
        $outcomes = [];
        foreach ($futures as $i => $future) {
            try {
                $outcomes[] = $future->await() === $i + 1 ? 'done' : 'wrong';
            } catch (ConnectionLostException $lost) {
                $outcomes[] = $lost->sqlState;
            }
        }

        self::assertSame(['57P01', '57P01', ...array_fill(0, 8, 'done')], $outcomes);
        self::assertSame(2, $pool->statistics()['lost_total']);
        self::assertUsable($pool);
    }

    public function testABorrowedConnectionThatIsLostIsReplaced(): void
    {
        $pool = $this->pool(1);
        $connection = $pool->acquire();
        self::terminate($connection->backendPid());
        self::thrown(ConnectionLostException::class, static fn() => $connection->query('SELECT 1'));
        $waiting = Async::run(static fn(): mixed => $pool->query('SELECT 1')->value());
        self::meanwhile();
        $connection->release();

        self::assertSame(1, $waiting->await());
        self::assertSame([], $this->warnings());
    }

    public function testAServerThatIsRestartedNeedsNoHelp(): void
    {
        $cluster = Cluster::start();
        try {
            $pool = new PostgresPool($cluster->dsn(), 3);
            $pids = [];
            foreach ([1, 2] as $_) {
                $futures = array_map(
                    static fn(): Future
                        => Async::run(
                            static fn(): mixed => $pool->query('SELECT pg_backend_pid() FROM pg_sleep(0.01)')->value(),
                        ),
                    range(1, 6),
                );
                $pids[] = array_map(static fn(Future $future): mixed => $future->await(), $futures);
                $cluster->restart();
                self::meanwhile();
                self::assertUsable($pool);
            }
            self::assertSame([], array_intersect(...$pids));
            $pool->kill();
        } finally {
            $cluster->stop();
        }
    }

    public function testCallsDuringAnOutageAreServedAfterIt(): void
    {
        $cluster = Cluster::start();
        try {
            $pool = new PostgresPool(
                $cluster->dsn(),
                3,
                new PostgresPoolOptions(acquireTimeout: 10.0),
            );
            self::assertUsable($pool);
            $cluster->kill();
            self::meanwhile();
            $futures = array_map(
                static fn(): Future => Async::run(static fn(): mixed => $pool->query('SELECT 1')->value()),
                range(1, 5),
            );
            self::meanwhile();
            $cluster->restart();

            self::assertSame(
                array_fill(0, 5, 1),
                array_map(static fn(Future $future): mixed => $future->await(), $futures),
            );
            $pool->kill();
        } finally {
            $cluster->stop();
        }
    }

    public function testTheReasonWhyNoConnectionCanBeOpenedIsReported(): void
    {
        $pool = new PostgresPool(
            $this->options(hosts: ['127.0.0.1:1'], password: 'secret'),
            2,
            new PostgresPoolOptions(acquireTimeout: 60.0),
        );
        $thrown = self::thrown(ConnectionFailedException::class, static fn() => $pool->query('SELECT 1'));

        self::assertStringContainsString('127.0.0.1:1', $thrown->getMessage());
        self::assertStringNotContainsString('secret', $thrown->getMessage());
    }

    public function testAPermanentFailureIsReportedAtOnce(): void
    {
        $pool = new PostgresPool($this->options(database: 'nowhere'), 2);
        $futures = array_map(
            static fn(): Future => Async::run(static fn(): mixed => $pool->query('SELECT 1')),
            range(1, 5),
        );
        foreach ($futures as $future) {
            self::assertSame('3D000', self::thrown(ConnectionFailedException::class, $future->await(...))->sqlState);
        }
        $options = PostgresOptions::fromDsn(Cluster::shared()->tcpDsn())->with(
            ['password' => 'wrong'],
        );
        $thrown = self::thrown(AuthenticationException::class, static fn() => (new PostgresPool($options))->acquire());

        self::assertSame('28P01', $thrown->sqlState);
    }
}
