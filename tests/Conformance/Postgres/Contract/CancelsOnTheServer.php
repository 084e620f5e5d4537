<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Revolt\EventLoop;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Scale;

use function Amp\delay;

/**
 * Tests what a cancellation does to the server's process, and to other statements.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait CancelsOnTheServer
{
    public function testTheServersProcessIsIdleSoonAfter(): void
    {
        $connection = $this->connect();
        $pid = $connection->backendPid();
        $source = new DeferredCancellation();
        $future = Async::run(
            static fn(): mixed => $connection->query('SELECT pg_sleep(1000)', [], $source->getCancellation()),
        );
        Eventually::holds(static fn(): bool => self::stateOf($pid) === 'active', 'the statement runs');
        $source->cancel();
        self::thrown(CancelledException::class, $future->await(...));
        Eventually::holds(static fn(): bool => self::stateOf($pid) === 'idle', 'the statement is stopped');

        self::assertSame($pid, $connection->backendPid());
        self::assertFalse($connection->isClosed());
        self::assertUsable($connection);
    }

    public function testAStatementThatWaitsBehindOthersIsCancelledAlone(): void
    {
        $connection = $this->connect();
        $gate = new Gate();
        $source = new DeferredCancellation();
        $before = Async::run(static fn(): mixed => $connection->query($gate->statement("'before'"))->value());
        $gate->awaitStatements(1);
        $cancelled = Async::run(
            static fn(): mixed => $connection->query('SELECT pg_sleep(1000)', [], $source->getCancellation()),
        );
        $behind = Async::run(static fn(): mixed => $connection->query("SELECT 'behind'")->value());
        self::meanwhile();
        $source->cancel();
        self::thrown(CancelledException::class, $cancelled->await(...));
        self::assertSame(1, $gate->waiting(), 'the one before goes on');
        $gate->open();

        self::assertSame(['before', 'behind'], [$before->await(), $behind->await()]);
    }

    public function testStatementsBehindACancelledOneComeThrough(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        for ($round = 0; $round < 20; ++$round) {
            $source = new DeferredCancellation();
            $cancelled = Async::run(
                static fn(): mixed => $connection->query('SELECT pg_sleep(1000)', [], $source->getCancellation()),
            );
            $others = [];
            for ($i = 0; $i < 5; ++$i) {
                $others[] = Async::run(
                    static fn(): mixed
                        => $connection->query(
                            "INSERT INTO {$table} VALUES (\$1) RETURNING i",
                            [5 * $round + $i],
                        )->value(),
                );
            }
            delay($round / 10_000);
            $source->cancel();
            self::thrown(CancelledException::class, $cancelled->await(...));
            foreach ($others as $i => $other) {
                self::assertSame(5 * $round + $i, $other->await());
            }
        }
        self::assertSame(
            range(0, 99),
            $connection->query("SELECT i FROM {$table} ORDER BY i")->column(),
            'each was done once',
        );
    }

    public function testACancellationNeverHitsTheNextStatement(): void
    {
        $connection = $this->connect();
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $cancelled = 0;
        $count = Scale::of(1_000);
        for ($i = 0; $i < $count; ++$i) {
            $source = new DeferredCancellation();
            $timer = EventLoop::delay($random->getInt(0, 2_500) / 1e6, static fn() => $source->cancel());
            try {
                $connection->query(
                    'SELECT pg_sleep($1)',
                    [$random->getInt(0, 2_000) / 1e6],
                    $source->getCancellation(),
                );
            } catch (CancelledException) {
                ++$cancelled;
            }
            EventLoop::cancel($timer);
            self::assertSame($i, $connection->query('SELECT $1::int FROM pg_sleep(0.0005)', [$i])->value());
        }
        self::assertGreaterThan(0, $cancelled);
        self::assertLessThan($count, $cancelled);
    }

    public function testRandomCancellationsAmongManyFibersStopNoOtherStatement(): void
    {
        $connection = $this->connect();
        $random = new Randomizer(new Mt19937(Scale::seed()));
        for ($round = 0; $round < Scale::of(100); ++$round) {
            $futures = $sources = [];
            for ($i = 0; $i < 12; ++$i) {
                $sources[$i] = $random->getInt(0, 2) === 0 ? new DeferredCancellation() : null;
                $source = $sources[$i];
                $sleep = $random->getInt(0, 300) / 1e6;
                $futures[$i] = Async::run(
                    static fn(): mixed
                        => $connection->query(
                            'SELECT $1::int FROM pg_sleep($2)',
                            [$i, $sleep],
                            $source?->getCancellation(),
                        )->value(),
                );
            }
            foreach (array_filter($sources) as $source) {
                EventLoop::delay($random->getInt(0, 3_000) / 1e6, static fn() => $source->cancel());
            }
            foreach ($futures as $i => $future) {
                try {
                    self::assertSame($i, $future->await());
                } catch (CancelledException $thrown) {
                    self::assertNotNull($sources[$i], 'it was cancelled itself');
                }
            }
            self::assertUsable($connection);
            foreach (array_filter($sources) as $source) {
                $source->cancel();
            }
        }
    }

    public function testACancellationThatComesTooLateDoesNotHitWhatTheSameFiberSendsNext(): void
    {
        $table = self::table('i int');
        $procedure = 'p_' . bin2hex(random_bytes(6));
        Observer::ask(
            "CREATE PROCEDURE {$procedure}() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO {$table} VALUES (1); "
                . 'COMMIT; PERFORM pg_sleep(0.05); END $$',
        );
        foreach ([
            static fn(PostgresConnection $connection): mixed => $connection->query('SELECT pg_sleep(0.05)'),
            static fn(PostgresConnection $connection): mixed => $connection->execute("CALL {$procedure}()"),
            static fn(PostgresConnection $connection) => $connection->executeScript('SELECT pg_sleep(0.05)'),
            static fn(PostgresConnection $connection): mixed => $connection->transaction(
                static fn(Transaction $transaction): mixed => $transaction->query('SELECT pg_sleep(0.05)'),
            ),
            static fn(PostgresConnection $connection): array
                => iterator_to_array($connection->stream('SELECT pg_sleep(0.05)')),
            static fn(PostgresConnection $connection): int
                => $connection->copyFrom("COPY {$table} FROM STDIN", (static function (): \Generator {
                    yield "2\n";
                    delay(0.05);
                })()),
            static fn(PostgresConnection $connection): array
                => iterator_to_array($connection->copyTo('COPY (SELECT pg_sleep(0.05)) TO STDOUT')),
        ] as $next) {
            $connection = $this->connect();
            $gate = new Gate();
            $statement = $gate->statement();
            $source = new DeferredCancellation();
            $future = Async::run(static function () use ($connection, $statement, $source, $next): void {
                self::thrown(
                    CancelledException::class,
                    static fn() => $connection->query($statement, [], $source->getCancellation()),
                );
                $next($connection);
            });
            $gate->awaitStatements(1);
            $gate->open();
            // The answer has arrived, but no fiber has read it.
            while (self::stateOf($connection->backendPid()) !== 'idle') {
                continue;
            }
            $source->cancel();
            $future->await();
            $connection->close();
        }
        self::assertSame('(1) (2)', self::committed($table));
    }

    public function testAScriptBehindACancelledStatementIsDoneOnce(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        for ($round = 0; $round < 20; ++$round) {
            $gate = new Gate();
            $statement = $gate->statement();
            $source = new DeferredCancellation();
            $before = Async::run(static fn(): mixed => $connection->query($statement));
            $cancelled = Async::run(
                static fn(): mixed
                    => $connection->query('SELECT pg_sleep($1)', [0.004 + $round / 5_000], $source->getCancellation()),
            );
            $script = Async::run(
                static fn()
                    => $connection->executeScript(
                        "INSERT INTO {$table} VALUES ({$round}); COMMIT; SELECT pg_sleep(0.01)",
                    ),
            );
            $gate->awaitStatements(1);
            $source->cancel();
            self::thrown(CancelledException::class, $cancelled->await(...));
            $gate->open();
            $before->await();
            $script->await();
        }
        self::assertSame(range(0, 19), $connection->query("SELECT i FROM {$table} ORDER BY i")->column());
    }

    public function testAStatementThatAnotherSessionCancelsIsNotSentAgain(): void
    {
        $table = self::table('i int');
        $gate = new Gate();
        $name = 'p_' . bin2hex(random_bytes(6));
        Observer::ask(
            "CREATE FUNCTION {$name}_f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM {$gate->call()}; "
                . 'RETURN NULL; END $$',
        );
        Observer::ask(
            "CREATE PROCEDURE {$name}() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO {$table} VALUES (1); COMMIT; "
                . "PERFORM {$gate->call()}; END $$",
        );
        $deferred = self::table('i int');
        Observer::ask(
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON {$deferred} DEFERRABLE INITIALLY DEFERRED "
                . "FOR EACH ROW EXECUTE FUNCTION {$name}_f()",
        );
        foreach (["CALL {$name}()", 'COMMIT'] as $statement) {
            $connection = $this->connect();
            if ($statement === 'COMMIT') {
                $connection->query('BEGIN');
                $connection->query("INSERT INTO {$deferred} VALUES (1)");
            }
            $source = new DeferredCancellation();
            // The statement ignores a cancel request, except that it ends.
            $cancelled = Async::run(
                static fn(): \Throwable => self::thrown(
                    CancelledException::class,
                    static fn(): mixed => $connection->query(
                        'DO $$ BEGIN PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END $$',
                        [],
                        $source->getCancellation(),
                    ),
                ),
            );
            $behind = Async::run(static fn(): mixed => $connection->query($statement));
            Eventually::holds(static fn(): bool => self::stateOf($connection->backendPid()) === 'active', 'it runs');
            $source->cancel();
            $cancelled->await();
            $gate->awaitStatements(1);
            Observer::ask("SELECT pg_cancel_backend({$connection->backendPid()})");

            self::thrown(QueryCancelledException::class, $behind->await(...));
            $connection->close();
        }
        self::assertSame(['(1)', ''], [self::committed($table), self::committed($deferred)]);
    }

    public function testAStatementThatAnotherSessionCancelsFails(): void
    {
        $connection = $this->connect();
        $gate = new Gate();
        $future = Async::run(static fn(): mixed => $connection->query($gate->statement()));
        $gate->awaitStatements(1);
        Observer::ask("SELECT pg_cancel_backend({$connection->backendPid()})");

        self::assertSame('57014', self::thrown(QueryCancelledException::class, $future->await(...))->sqlState);
        self::assertUsable($connection);
    }

    public function testACaughtCancellationWithinATransactionIsReportedAtItsEnd(): void
    {
        $connection = $this->connect();
        $table = self::table('i int');
        $source = new DeferredCancellation();
        self::thrown(
            \Spindle\Postgres\TransactionAbortedException::class,
            static fn()
                => $connection->transaction(static function (Transaction $transaction) use ($table, $source): void {
                    $transaction->execute("INSERT INTO {$table} VALUES (1)");
                    EventLoop::delay(0.002, static fn() => $source->cancel());
                    self::thrown(
                        CancelledException::class,
                        static fn() => $transaction->query('SELECT pg_sleep(1000)', [], $source->getCancellation()),
                    );
                }),
        );

        self::assertSame('', self::committed($table));
        self::assertUsable($connection);
    }

    public function testConnectingIsCancelledAndLeavesNothing(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->pause();
        $source = new DeferredCancellation();
        $future = Async::run(
            fn(): PostgresConnection
                => PostgresConnection::connect($this->throughProxy($proxy), $source->getCancellation()),
        );
        Eventually::holds(static fn(): bool => $proxy->connections === 1, 'it is begun');
        $source->cancel(new \DomainException('enough'));
        self::assertSame(
            'enough',
            self::thrown(CancelledException::class, $future->await(...))->getPrevious()?->getMessage(),
        );
        $proxy->resume();
        Eventually::holds(static fn(): bool => $proxy->open() === 0, 'it is closed');

        self::thrown(
            CancelledException::class,
            fn() => PostgresConnection::connect($this->throughProxy($proxy), $source->getCancellation()),
        );
        self::assertSame(1, $proxy->connections);
        $proxy->stop();
    }
}
