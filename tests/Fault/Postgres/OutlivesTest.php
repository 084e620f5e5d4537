<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Spindle\Postgres\CommitUnknownException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Reconnected;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Tests that what a former borrower has kept of a connection or transaction does not affect the next one. */
final class OutlivesTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    private string $table;

    /** @var list<string> */
    private array $warnings = [];

    protected function setUp(): void
    {
        $this->table = 'outlives_' . bin2hex(random_bytes(4));
        Cluster::ask(<<<SQL
            CREATE TABLE {$this->table} (id int, seconds float NOT NULL DEFAULT 0);
            CREATE FUNCTION {$this->table}() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN PERFORM pg_sleep(NEW.seconds); RETURN NULL; END';
            CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {$this->table} DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW WHEN (NEW.seconds > 0) EXECUTE FUNCTION {$this->table}();
            SQL);
    }

    protected function tearDown(): void
    {
        Cluster::ask("DROP TABLE {$this->table}; DROP FUNCTION {$this->table}()");
    }

    public function testAStreamThatOutlivesItsLoanIsNothingToTheNextBorrower(): void
    {
        foreach (['read on', 'let go', 'let go before the first statement'] as $how) {
            $pool = $this->pool();
            $borrowed = $pool->acquire();
            $rows = $borrowed->stream('SELECT generate_series(1, 10000) AS i');
            self::assertSame(['i' => 1], $rows->current());
            $borrowed->release();
            $ended = Outcome::of(
                fn(): mixed => $pool->transaction(function (Transaction $transaction) use (&$rows, $how): void {
                    if ($how !== 'let go before the first statement') {
                        $transaction->execute("INSERT INTO {$this->table} VALUES (1)");
                    }
                    if ($how === 'read on') {
                        self::assertInstanceOf(
                            \LogicException::class,
                            Outcome::of(static fn(): int => self::rest($rows)),
                        );
                    }
                    $rows = null;
                    gc_collect_cycles();
                    delay(0.01);
                    $transaction->execute("INSERT INTO {$this->table} VALUES (2)");
                    throw new \DomainException('undone');
                }),
            );

            self::assertInstanceOf(\DomainException::class, $ended, "{$how}: " . Outcome::describe($ended));
            self::assertSame([], $this->ids(), $how);
            $pool->close();
        }
    }

    public function testATransactionWhoseConnectionIsReleasedIsUndoneAndFails(): void
    {
        $pool = $this->pool();
        $borrowed = $pool->acquire();
        [$begun, $goOn] = [new DeferredFuture(), new DeferredFuture()];
        $first = Async::run(
            fn(): mixed => Outcome::of(
                fn(): mixed => $borrowed->transaction(function (Transaction $transaction) use ($begun, $goOn): string {
                    $transaction->execute("INSERT INTO {$this->table} VALUES (1)");
                    $begun->complete();
                    $goOn->getFuture()->await();
                    $transaction->execute("INSERT INTO {$this->table} VALUES (2)");

                    return 'done';
                }),
            ),
        );
        $begun->getFuture()->await(new TimeoutCancellation(5));
        $borrowed->release();
        $other = Outcome::of(
            fn(): mixed => $pool->transaction(function (Transaction $transaction) use ($goOn, $first): void {
                $transaction->execute("INSERT INTO {$this->table} VALUES (3)");
                $goOn->complete();
                $first->await(new TimeoutCancellation(5));
                $transaction->execute("INSERT INTO {$this->table} VALUES (4)");
                throw new \DomainException('undone');
            }),
        );

        self::assertInstanceOf(\LogicException::class, $first->await());
        self::assertInstanceOf(\DomainException::class, $other, Outcome::describe($other));
        self::assertSame([], $this->ids());
        self::assertStringContainsString('A transaction was left open', implode($this->warnings));
        $pool->close();
    }

    public function testACopyThatOutlivesItsLoanIsStopped(): void
    {
        $pool = $this->pool();
        $borrowed = $pool->acquire();
        $rows = $borrowed->copyTo("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 1000000)) TO STDOUT");
        $rows->current();
        $borrowed->release();

        self::assertSame(5, $pool->query('SELECT 5')->value());
        self::assertInstanceOf(\LogicException::class, Outcome::of(static fn(): int => self::rest($rows)));
        self::assertSame(6, $pool->query('SELECT 6')->value());
        $pool->close();
    }

    public function testAStreamThatOutlivesItsTransactionIsNothingToTheNext(): void
    {
        $pool = $this->pool();
        $rows = $pool->transaction(static function (Transaction $transaction): \Generator {
            $rows = $transaction->stream('SELECT generate_series(1, 10000) AS i');
            $rows->current();

            return $rows;
        });
        $pool->transaction(function (Transaction $transaction) use ($rows): void {
            $transaction->execute("INSERT INTO {$this->table} VALUES (1)");
            self::assertInstanceOf(\LogicException::class, Outcome::of(static fn(): int => self::rest($rows)));
            $transaction->execute("INSERT INTO {$this->table} VALUES (2)");
        });

        self::assertSame([1, 2], $this->ids());
        $pool->close();
    }

    public function testATransactionThatAStatementBeganIsNotEndedByAnother(): void
    {
        $connection = $this->connection();
        $connection->query('BEGIN');
        $connection->execute("INSERT INTO {$this->table} VALUES (1)");
        foreach ([
            'stream() can not begin its own' => static fn(): int => iterator_count($connection->stream('SELECT 1')),
            'transaction() can not begin another' => static fn(): mixed => $connection->transaction(
                static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1')->value(),
            ),
        ] as $reason => $work) {
            $outcome = Outcome::of($work);
            self::assertInstanceOf(\LogicException::class, $outcome, Outcome::describe($outcome));
            self::assertStringContainsString(
                "A statement has begun a transaction on this connection, so {$reason}",
                $outcome->getMessage(),
            );
        }
        $connection->query('ROLLBACK');

        self::assertSame([], $this->ids());
        self::assertSame(
            1,
            $connection->transaction(
                static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1')->value(),
            ),
        );
    }

    public function testATransactionThatAStatementEndsIsNotMistakenForOneThatIsDone(): void
    {
        foreach ([$this->connection(), $pool = $this->pool()] as $link) {
            $outcome = Outcome::of(fn(): mixed => $link->transaction(function (Transaction $transaction): int {
                $transaction->execute("INSERT INTO {$this->table} VALUES (1)");

                return $transaction->execute('ROLLBACK');
            }));

            self::assertInstanceOf(\LogicException::class, $outcome, Outcome::describe($outcome));
            self::assertStringContainsString('A statement within the transaction has ended', $outcome->getMessage());
            self::assertSame([], $this->ids());
            self::assertSame(1, $link->query('SELECT 1')->value());
        }
        $pool->close();
    }

    public function testWhatIsClosedWhileItCommitsLeavesItUnknown(): void
    {
        foreach ([$this->connection(), $this->pool()] as $link) {
            $committing = Async::run(
                fn(): mixed => Outcome::of(
                    fn(): mixed => $link->transaction(
                        fn(Transaction $transaction): int
                            => $transaction->execute("INSERT INTO {$this->table} VALUES (1, 30)"),
                    ),
                ),
            );
            Eventually::holds(self::commits(...), 'it commits');
            $link->kill();
            $outcome = $committing->await();

            self::assertInstanceOf(CommitUnknownException::class, $outcome, Outcome::describe($outcome));
            Eventually::holds(static fn(): bool => !self::commits(), 'the server has stopped');
            self::assertSame([], $this->ids());
        }
    }

    public function testAGapBeginsAtTheLastSignOfLifeOfTheConnection(): void
    {
        $name = $this->table;
        $listener = (new PostgresPool(PostgresOptions::fromDsn(
            Cluster::shared()->dsn(application_name: $name),
        )))->listen($name);
        Cluster::ask("SELECT pg_notify('{$name}', 'first') FROM pg_sleep(0)");
        $heard = Async::run(static fn(): mixed => $listener->current());
        Eventually::holds(
            static fn(): bool => Cluster::ask(
                "SELECT FROM pg_stat_activity WHERE application_name = '{$name}' AND query LIKE 'LISTEN%'",
            ) !== [],
            'it listens',
        );
        Cluster::ask("SELECT pg_notify('{$name}', 'second')");
        $heard->await();
        $before = new \DateTimeImmutable();
        [['pid' => $pid]] = Cluster::ask(
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{$name}'",
        );
        $isLost = static fn(): bool => Cluster::ask("SELECT FROM pg_stat_activity WHERE pid = {$pid}") === [];
        Eventually::holds($isLost, 'the server has closed the connection');
        delay(0.01); // The event loop notices the loss in its next turns.
        $after = new \DateTimeImmutable();
        usleep(10_000); // A reconnection on demand would begin after this moment.
        $listener->next();
        $gap = $listener->current();

        self::assertInstanceOf(Reconnected::class, $gap);
        self::assertLessThan($after, $gap->since);
        self::assertLessThan(1.0, (float) $before->format('U.u') - (float) $gap->since->format('U.u'));
    }

    private function pool(): PostgresPool
    {
        return new PostgresPool(
            self::options(),
            1,
            new PostgresPoolOptions(onWarning: function (string $warning): void {
                $this->warnings[] = $warning;
            }),
        );
    }

    private function connection(): PostgresConnection
    {
        return PostgresConnection::connect(self::options());
    }

    private static function options(): PostgresOptions
    {
        return PostgresOptions::fromDsn(Cluster::shared()->dsn());
    }

    /** @param \Generator<mixed>|null $rows a generator that has begun */
    private static function rest(?\Generator $rows): int
    {
        $count = 0;
        for (; $rows?->valid() === true; $rows->next()) {
            ++$count;
        }

        return $count;
    }

    private static function commits(): bool
    {
        return Cluster::ask("SELECT FROM pg_stat_activity WHERE query = 'COMMIT' AND wait_event = 'PgSleep'") !== [];
    }

    /** @return list<int> */
    private function ids(): array
    {
        return array_map(intval(...), array_column(Cluster::ask("SELECT id FROM {$this->table} ORDER BY id"), 'id'));
    }
}
