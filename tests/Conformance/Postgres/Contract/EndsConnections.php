<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\Future;
use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;

/**
 * Tests how a connection ends: closed, unreferenced, lost, forked.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait EndsConnections
{
    public function testAnotherEncodingEndsTheConnectionInsteadOfStoringWrongTexts(): void
    {
        foreach ([
            "SET client_encoding = 'LATIN1'",
            "SET NAMES 'WIN1252'",
            "SELECT set_config('client_encoding', 'LATIN1', false)",
        ] as $sql) {
            $connection = $this->connect();
            $connection->query("SET client_encoding = 'UTF8'");
            $connection->query('RESET client_encoding');
            $thrown = self::thrown(ConnectionLostException::class, static fn(): mixed => $connection->query($sql));
            self::assertStringContainsString('client_encoding', $thrown->getMessage());
            self::assertTrue($connection->isClosed());
        }
    }

    public function testAnEndThatIsReadTogetherWithAnAnswerHasItsReason(): void
    {
        $connection = $this->connect();
        $pid = $connection->backendPid();
        $states = static fn(): array => Observer::ask("SELECT state FROM pg_stat_activity WHERE pid = {$pid}");
        $sleep = static fn(): mixed => [$connection->query('SELECT pg_sleep(1)'), $connection->query('SELECT 1')];
        $loss = Async::run(
            static fn(): ConnectionLostException => self::thrown(ConnectionLostException::class, $sleep),
        );
        Eventually::holds(static fn(): bool => ($states()[0]['state'] ?? '') === 'active', 'it is executed');
        Eventually::holdsByItself(static fn(): bool => ($states()[0]['state'] ?? '') !== 'active', 'it is answered');
        Observer::ask("SELECT pg_terminate_backend({$pid})");
        Eventually::holdsByItself(static fn(): bool => $states() === [], 'the connection has ended');
        usleep(20_000); // until the process has closed its socket

        $lost = $loss->await();
        self::assertSame('57P01', $lost->sqlState, $lost->getMessage());
    }

    public function testWhatHoldsAConnectionCanNotBeSerialized(): void
    {
        $connection = $this->connect();
        $pool = new PostgresPool($this->options(), 1);
        $borrowed = $pool->acquire();
        $connection->transaction(static function (Transaction $transaction) use ($connection, $pool, $borrowed): void {
            foreach ([$transaction, $connection, $pool, $borrowed] as $object) {
                $thrown = self::thrown(\LogicException::class, static fn(): string => serialize($object));
                self::assertStringContainsString('belongs to this process', $thrown->getMessage());
                self::thrown(
                    \LogicException::class,
                    static fn(): mixed
                        => unserialize(\sprintf('O:%d:"%s":0:{}', \strlen($object::class), $object::class)),
                );
            }
        });
        $borrowed->release();
        self::assertUsable($connection);
        self::assertUsable($pool);
    }

    public function testARoleWhoseFormatsAreOthersHasTheSameValues(): void
    {
        $role = 'role_' . bin2hex(random_bytes(6));
        Observer::ask("CREATE ROLE {$role} LOGIN");
        foreach ([
            "IntervalStyle = 'sql_standard'",
            "DateStyle = 'German'",
            'extra_float_digits = -15',
            'bytea_output = escape',
            'array_nulls = off',
            "TimeZone = 'Asia/Kolkata'",
        ] as $setting) {
            Observer::ask("ALTER ROLE {$role} SET {$setting}");
        }
        $pool = new PostgresPool($this->options(user: $role, password: null), 1);
        $values = "SELECT interval '1 year -2 days 03:04:05.6' AS i, "
            . '0.1::float8 + 0.2::float8 AS f, ARRAY[0.1::float4] AS g, '
            . "'\\x00ff'::bytea AS b, \$1::text[] AS a, timestamp '2026-01-02 03:04:05' AS t";
        $expected = $this->connect()->query($values, [['x', null]])->one();
        try {
            foreach (['at first', 'after a reset'] as $when) {
                self::assertEquals($expected, $pool->query($values, [['x', null]])->one(), $when);
                self::assertSame(0.1 + 0.2, $pool->query('SELECT 0.1::float8 + 0.2::float8')->value());
                $pool->acquire()->release();
            }
        } finally {
            $pool->close();
            unset($pool);
            Observer::ask("DROP ROLE {$role}");
        }
    }

    public function testAConnectionIsClosedWhenItIsLetGo(): void
    {
        $connection = $this->connect();
        self::assertUsable($connection);
        self::assertSame([$connection->backendPid()], array_keys($this->backends()));
        unset($connection);

        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'nobody turns the loop, and it is closed');
    }

    public function testAConnectionThatIsClosedIsOfNoUse(): void
    {
        $connection = $this->connect();
        self::assertFalse($connection->isClosed());
        $connection->close();
        $connection->close();

        self::assertTrue($connection->isClosed());
        foreach ($this->verbs($connection) as $verb) {
            self::thrown(ConnectionClosedException::class, $verb);
        }
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'the server knows');
    }

    public function testClosingFinishesCallsThatWereMadeBefore(): void
    {
        $connection = $this->connect();
        $gate = new Gate();
        $futures = [
            Async::run(static fn(): mixed => $connection->query($gate->statement())->value()),
            Async::run(static fn(): mixed => $connection->query('SELECT 1')->value()),
            Async::run(
                static fn(): mixed => $connection->transaction(static fn(Transaction $transaction): mixed
                    => $transaction->transaction(static fn(Transaction $nested): mixed
                        => $nested->query('SELECT 2')->value())),
            ),
            Async::run(static fn(): mixed => iterator_to_array($connection->stream('SELECT 3 AS i'))),
            Async::run(static fn(): mixed => $connection->query('SELECT 4')->value()),
        ];
        $gate->awaitStatements(1);
        $closing = Async::run(static fn() => $connection->close());
        self::meanwhile();
        self::assertTrue($connection->isClosed());
        foreach ($this->verbs($connection) as $verb) {
            self::thrown(ConnectionClosedException::class, $verb);
        }
        self::assertFalse($closing->isComplete());
        $gate->open();

        self::assertSame(
            ['passed', 1, 2, [['i' => 3]], 4],
            array_map(static fn(Future $future): mixed => $future->await(), $futures),
        );
        $closing->await();
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'the server knows');
    }

    public function testClosingWaitsForTheNextAttemptOfATransaction(): void
    {
        $connection = $this->connect();
        $closing = null;
        $work = static function (Transaction $transaction) use ($connection, &$closing): mixed {
            if ($closing === null) {
                $closing = Async::run(static fn() => $connection->close());
                $transaction->executeScript("DO $$ BEGIN RAISE 'once' USING ERRCODE = 'deadlock_detected'; END $$");
            }
            self::assertFalse($closing->isComplete());

            return $transaction->query('SELECT 7')->value();
        };

        self::assertSame(7, $connection->transaction($work, retries: 1));
        $closing?->await();
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'the server knows');
    }

    public function testClosingWaitsForTheEndOfAStream(): void
    {
        foreach ([false, true] as $isRead) {
            $connection = $this->connect();
            $rows = $connection->stream('SELECT generate_series(1, 1000) AS i');
            self::assertSame(['i' => 1], $rows->current());
            $closing = Async::run(static fn() => $connection->close());
            self::meanwhile();
            self::assertFalse($closing->isComplete());
            if ($isRead) {
                self::assertCount(1000, iterator_to_array($rows));
            }
            unset($rows);
            $closing->await();
            Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'the server knows');
        }
    }

    public function testAFiberThatUsesTheConnectionCanNotWaitForItsEnd(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        $connection->transaction(static function (Transaction $transaction) use ($connection, $table): void {
            $thrown = self::thrown(\LogicException::class, static fn() => $connection->close());
            self::assertStringContainsString('wait for itself', $thrown->getMessage());
            $transaction->execute("INSERT INTO {$table} VALUES (1)");
        });
        self::assertSame('(1)', self::committed($table));
        self::assertFalse($connection->isClosed());
        self::assertSame(1, $connection->query('SELECT 1')->value());
    }

    public function testAConnectionThatIsClosedWherePhpCanNotWaitEndsByItself(): void
    {
        if (!\function_exists('pcntl_signal')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $connection = $this->connect();
        $gate = new Gate();
        $statement = Async::run(static fn(): mixed => $connection->query($gate->statement())->value());
        $gate->awaitStatements(1);
        $this->inASignalHandler(
            static fn() => self::thrown(CannotWaitException::class, static fn() => $connection->close()),
        );
        self::thrown(ConnectionClosedException::class, static fn() => $connection->query('SELECT 1'));
        $gate->open();

        self::assertSame('passed', $statement->await());
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'it is closed after the statement');
        $this->inASignalHandler(static fn() => $connection->close());
    }

    public function testAFiberThatClosesAConnectionIsNotGarbage(): void
    {
        self::assertSame('closed', Async::alone(function (): string {
            $connection = $this->connect();
            $reader = new \stdClass();
            $reader->itself = $reader;
            $reader->rows = $connection->stream('SELECT generate_series(1, 1000)');
            Async::run(static fn() => $reader->rows->current())->await();
            unset($reader);
            EventLoop::delay(0.1, static fn() => null); // until PHP has collected the reader as garbage
            $connection->close();

            return 'closed';
        }));
    }

    public function testKillingFailsRunningCalls(): void
    {
        $connection = $this->connect();
        $gate = new Gate();
        $futures = [
            Async::run(static fn(): mixed => $connection->query($gate->statement())),
            Async::run(static fn(): mixed => $connection->query('SELECT 1')),
            Async::run(static fn(): mixed => iterator_to_array($connection->stream('SELECT 1'))),
            Async::run(
                static fn(): mixed
                    => $connection->transaction(
                        static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1'),
                    ),
            ),
        ];
        $gate->awaitStatements(1);
        $connection->kill();
        foreach ($futures as $future) {
            self::thrown(ConnectionClosedException::class, $future->await(...));
        }
        Eventually::holds(fn(): bool => $this->backends() === [], 'the server stops what it worked at');
        $gate->open();
    }

    public function testKillingEndsATransaction(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        self::thrown(
            ConnectionClosedException::class,
            static fn()
                => $connection->transaction(static function (Transaction $transaction) use ($connection, $table): void {
                    $transaction->execute("INSERT INTO {$table} VALUES (1)");
                    $connection->kill();
                }),
        );
        self::assertSame('', self::committed($table));
    }

    public function testALossOfAnIdleConnectionIsReportedToTheNextCall(): void
    {
        $connection = $this->connect();
        self::terminate($connection->backendPid());
        $thrown = self::thrown(ConnectionLostException::class, static fn() => $connection->query('SELECT 1'));

        self::assertSame('57P01', $thrown->sqlState);
        self::assertTrue($connection->isClosed());
        foreach ($this->verbs($connection) as $verb) {
            self::assertStringContainsString(
                'Nothing was sent',
                self::thrown(ConnectionLostException::class, $verb)->getMessage(),
            );
        }
    }

    public function testALossWithoutAMessageIsReportedToo(): void
    {
        foreach (['close', 'reset'] as $how) {
            foreach ([true, false] as $isIdle) {
                $proxy = FaultyProxy::before(Cluster::shared());
                $connection = PostgresConnection::connect($this->throughProxy($proxy));
                $gate = new Gate();
                $futures = $isIdle
                    ? []
                    : [
                        Async::run(static fn(): mixed => $connection->query($gate->statement())),
                        Async::run(static fn(): mixed => $connection->query('SELECT 1')),
                    ];
                $gate->awaitStatements($isIdle ? 0 : 1);
                $how === 'close' ? $proxy->close() : $proxy->reset();
                foreach ($futures as $future) {
                    self::assertNull(self::thrown(ConnectionLostException::class, $future->await(...))->sqlState);
                }
                self::thrown(ConnectionLostException::class, static fn() => $connection->query('SELECT 1'));
                self::assertTrue($connection->isClosed());
                $gate->open();
                $proxy->stop();
            }
        }
    }

    public function testALossIsNoticedWhileTheLoopTurns(): void
    {
        $connection = $this->connect();
        self::terminate($connection->backendPid());

        Eventually::holds(static fn(): bool => $connection->isClosed(), 'it is known to be closed');
    }

    public function testALossFailsAllThatIsUnderWayAndNothingIsSentTwice(): void
    {
        $connection = $this->connect();
        $gate = new Gate();
        $table = self::table('i int');
        $futures = [
            Async::run(
                static fn(): mixed
                    => $connection->query("INSERT INTO {$table} SELECT 1 FROM ({$gate->statement()}) AS g"),
            ),
        ];
        for ($i = 2; $i < 6; ++$i) {
            $futures[] = Async::run(
                static fn(): mixed => $connection->query("INSERT INTO {$table} VALUES (\$1)", [$i]),
            );
        }
        $gate->awaitStatements(1);
        self::terminate($connection->backendPid());
        foreach ($futures as $i => $future) {
            self::assertSame('57P01', self::thrown(ConnectionLostException::class, $future->await(...))->sqlState);
        }
        $gate->open();
        self::assertSame('', self::committed($table));
    }

    public function testAnIdleConnectionDoesNotKeepTheLoopRunning(): void
    {
        $connection = $this->connect();
        EventLoop::run();
        self::assertUsable($connection);
        EventLoop::run();
        foreach ($connection->stream('SELECT generate_series(1, 1000)') as $_) {
            break;
        }
        EventLoop::run();
        self::assertUsable($connection);
    }

    public function testAStatementKeepsTheLoopRunning(): void
    {
        $connection = $this->connect();
        $future = Async::run(static fn(): mixed => $connection->query("SELECT 'done' FROM pg_sleep(0.01)")->value());
        EventLoop::run();

        self::assertTrue($future->isComplete());
        self::assertSame('done', $future->await());
    }

    public function testAForkOfThisProcessCanNotUseTheConnection(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $connection = $this->connect();
        $rows = $connection->stream('SELECT generate_series(1, 1000)');
        self::assertUsable($connection);
        [$here, $there] = \Spindle\Tests\Streams::pair();
        $pid = pcntl_fork();
        if ($pid === 0) {
            $refused = 0;
            foreach ($this->verbs($connection) as $verb) {
                try {
                    $verb();
                } catch (\LogicException $thrown) {
                    $refused += str_contains($thrown->getMessage(), 'fork') ? 1 : 0;
                }
            }
            fwrite($there, "{$refused}\n");
            // Releasing or closing in the fork must not close the parent's connection.
            $verb = $rows = null;
            $connection->close();
            $connection = null;
            gc_collect_cycles();
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($pid, $status);

        \assert($connection !== null);
        self::assertSame((string) \count($this->verbs($connection)), trim((string) fgets($here)));
        self::assertUsable($connection);
        self::assertCount(1000, iterator_to_array($rows));
    }

    public function testAForkThatEndsBeforeItsParentLeavesTheConnection(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $connection = $this->connect();
        self::assertUsable($connection);
        $pid = pcntl_fork();
        if ($pid === 0) {
            $connection = null;
            gc_collect_cycles();
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($pid, $status);
        self::meanwhile();

        \assert($connection !== null);
        self::assertUsable($connection);
    }

    /** @return list<\Closure(): mixed> */
    private function verbs(PostgresConnection $connection): array
    {
        return [
            static fn() => $connection->query('SELECT 1'),
            static fn() => $connection->query('SELECT $1::text', ['x']),
            static fn() => $connection->execute('SELECT 1'),
            static fn() => iterator_to_array($connection->stream('SELECT 1')),
            static fn() => $connection->copyFrom('COPY nowhere FROM STDIN', ['']),
            static fn() => $connection->copyFrom('COPY nowhere FROM STDIN', [[1]]),
            static fn() => iterator_to_array($connection->copyTo('COPY (SELECT 1) TO STDOUT')),
            static fn() => $connection->executeScript('SELECT 1'),
            static fn() => $connection->transaction(static fn(): bool => true),
        ];
    }
}
