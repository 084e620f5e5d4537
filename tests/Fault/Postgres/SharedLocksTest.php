<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Future;
use Amp\TimeoutCancellation;
use Psr\Log\AbstractLogger;
use Revolt\EventLoop;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Journal;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\Future\await;

/** Tests statements of a pool that wait for locks, and others at the same time. */
final class SharedLocksTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    private const ENDS_WITHIN = 15.0;

    private string $table = '';

    protected function setUp(): void
    {
        $this->table = 'locked_' . bin2hex(random_bytes(4));
        Cluster::ask("CREATE TABLE {$this->table} AS SELECT i, 0 AS n FROM generate_series(1, 20) AS i");
    }

    protected function tearDown(): void
    {
        Cluster::ask("DROP TABLE {$this->table}");
    }

    public function testAStatementBesideATransactionDoesNotWaitForOneThatWaitsForItsLock(): void
    {
        $pool = $this->pool(10);
        $others = [];
        $pool->transaction(function (Transaction $transaction) use ($pool, &$others): void {
            $transaction->execute("UPDATE {$this->table} SET n = 1 WHERE i = 1");
            $others[] = Async::run(
                fn(): int => $pool->execute("UPDATE {$this->table} SET n = n + 1 WHERE i = \$1", [1]),
            );
            $this->awaitLocked();
            for ($i = 0; $i < 20; ++$i) {
                self::assertSame(1, $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [$i + 1])->value());
            }
        }, cancellation: new TimeoutCancellation(self::ENDS_WITHIN));

        self::assertSame([1], await($others));
        self::assertSame(2, $pool->query("SELECT n FROM {$this->table} WHERE i = 1")->value());
        $pool->close();
    }

    public function testARowLockHoldsUpOnlyTheUpdatesOfItsRow(): void
    {
        $pool = $this->pool(3);
        $blocked = null;
        $pool->transaction(function (Transaction $transaction) use ($pool, &$blocked): void {
            $transaction->execute("UPDATE {$this->table} SET n = 1 WHERE i = 1");
            $blocked = Async::run(
                fn(): int => $pool->execute("UPDATE {$this->table} SET n = n + 1 WHERE i = \$1", [1]),
            );
            $this->awaitLocked();
            $all = [];
            for ($i = 2; $i <= 20; ++$i) {
                $all[] = Async::run(
                    fn(): int => $pool->execute("UPDATE {$this->table} SET n = n + 1 WHERE i = \$1", [$i]),
                );
                $all[] = Async::run(
                    fn(): mixed => $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [$i])->value(),
                );
            }
            self::assertSame(38, array_sum(await($all, new TimeoutCancellation(self::ENDS_WITHIN))));
        }, cancellation: new TimeoutCancellation(self::ENDS_WITHIN));

        self::assertSame(1, $blocked?->await());
        $pool->close();
    }

    public function testAReadThatWaitsForALockGivesWayToThoseBehindIt(): void
    {
        // One connection holds the lock, the other one is shared.
        $pool = $this->pool(2);
        $blocked = null;
        $pool->transaction(function (Transaction $transaction) use ($pool, &$blocked): void {
            $transaction->execute("LOCK {$this->table}");
            $blocked = Async::run(
                fn(): mixed => $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [1])->value(),
            );
            // None of these fibers has the transaction, so they may share.
            $behind = array_map(
                static fn(int $i): Future
                    => Async::run(static fn(): mixed => $pool->query('SELECT $1::int', [$i])->value()),
                range(1, 5),
            );

            self::assertSame(range(1, 5), await($behind, new TimeoutCancellation(self::ENDS_WITHIN)));
        }, cancellation: new TimeoutCancellation(self::ENDS_WITHIN));

        self::assertSame(1, $blocked?->await(new TimeoutCancellation(self::ENDS_WITHIN)));
        self::assertSame(0, $pool->statistics()['waiting']);
        $pool->close();
    }

    public function testAReadThatWaitsForALockGivesWayWhileMoreStatementsAreSent(): void
    {
        // With a read timeout, the connection records its writes.
        $options = PostgresOptions::fromDsn(Cluster::shared()->dsn())->with(['readTimeout' => self::ENDS_WITHIN]);
        $pool = $this->pool(2, options: $options);
        $blocked = null;
        $sent = [];
        $pool->transaction(function (Transaction $transaction) use ($pool, &$blocked, &$sent): void {
            $transaction->execute("LOCK {$this->table}");
            $blocked = Async::run(
                fn(): mixed => $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [1])->value(),
            );
            $send = static function () use ($pool, &$sent): void {
                $sent[] = Async::run(static fn(): mixed => $pool->query('SELECT $1::int', [7])->value());
            };
            $send();
            $sending = EventLoop::repeat(0.001, $send);
            try {
                Eventually::holds(
                    static fn(): bool => $pool->statistics()['waiting'] >= 20,
                    'no more statements are sent',
                );
                self::assertLessThan(200, \count($sent), 'statements that may be behind the one that waits');
                self::assertSame(7, $sent[0]->await(new TimeoutCancellation(self::ENDS_WITHIN)));
            } finally {
                EventLoop::cancel($sending);
            }
        }, cancellation: new TimeoutCancellation(self::ENDS_WITHIN));

        self::assertSame(1, $blocked?->await(new TimeoutCancellation(self::ENDS_WITHIN)));
        self::assertSame([7], array_unique(await($sent, new TimeoutCancellation(self::ENDS_WITHIN)), \SORT_REGULAR));
        $pool->close();
    }

    public function testReadsThatAllWaitForTheSameLockGiveWayToEachOtherUntilTheyAreAnswered(): void
    {
        $journal = new Journal();
        $options = PostgresOptions::fromDsn(Cluster::shared()->dsn())->with(['logger' => $journal]);
        $pool = $this->pool(2, options: $options);
        $read = fn(): mixed => $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [1])->value();
        $reads = [];
        $pool->transaction(function (Transaction $transaction) use ($read, $journal, &$reads): void {
            $transaction->execute("LOCK {$this->table}");
            $reads = [Async::run($read), Async::run($read)];
            Eventually::holds(
                static fn(): bool => substr_count($journal->text(), 'cancel request') >= 7,
                'each gave way three times',
                self::ENDS_WITHIN,
            );
        }, cancellation: new TimeoutCancellation(self::ENDS_WITHIN));

        self::assertSame([1, 1], array_values(await($reads, new TimeoutCancellation(self::ENDS_WITHIN))));
        $pool->close();
    }

    public function testAReadThatCanNotBeAskedToGiveWayIsAnsweredInTheEnd(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $logger = new class extends AbstractLogger {
            /** How often the server was asked to cancel. */
            public int $asked = 0;

            public function log(mixed $level, string|\Stringable $message, array $context = []): void
            {
                $this->asked += str_contains((string) $message, 'cancel request') ? 1 : 0;
            }
        };
        $options = PostgresOptions::fromDsn(
            Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable'),
        )->with(['logger' => $logger]);
        $pool = $this->pool(2, options: $options);
        $futures = [];
        $pool->transaction(function (Transaction $transaction) use ($pool, $proxy, $logger, &$futures): void {
            $transaction->execute("LOCK {$this->table}");
            $pool->query('SELECT $1::int', [0]); // opens the other connection
            $futures[] = Async::run(
                fn(): mixed => $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [1])->value(),
            );
            for ($i = 2; $i <= 6; ++$i) {
                $futures[] = Async::run(static fn(): mixed => $pool->query('SELECT $1::int', [$i])->value());
            }
            Eventually::holds(
                static fn(): bool => $pool->statistics()['in_use'] === 2 && $pool->statistics()['waiting'] === 0,
                'all are sent',
            );
            $proxy->refuse();
            Eventually::holds(static fn(): bool => $logger->asked >= 2, 'it was asked for again', self::ENDS_WITHIN);
        }, cancellation: new TimeoutCancellation(self::ENDS_WITHIN));

        self::assertSame(range(1, 6), await($futures, new TimeoutCancellation(self::ENDS_WITHIN)));
        self::assertSame(0, $pool->statistics()['lost_total']);
        $pool->close();
        $proxy->stop();
    }

    public function testALongRoundTripIsNotMistakenForAReadThatStandsStill(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->delay(0.15);
        $journal = new Journal();
        $options = PostgresOptions::fromDsn(
            Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable'),
        )->with(['logger' => $journal]);
        // On a machine that is busy one may stand still.
        for ($tries = 1; $tries === 1 || $tries < 4 && str_contains($journal->text(), 'cancel request'); ++$tries) {
            $pool = new PostgresPool($options, 1, new PostgresPoolOptions(acquireTimeout: self::ENDS_WITHIN));
            $ask = static fn(int $i): mixed => $pool->query('SELECT $1::int', [$i])->value();
            array_map($ask, range(1, 3));
            $journal->records = [];
            self::assertEqualsCanonicalizing(
                range(1, 5),
                await(array_map(static fn(int $i): Future => Async::run(static fn(): mixed => $ask($i)), range(1, 5))),
            );
            $pool->close();
        }

        self::assertStringNotContainsString('cancel request', $journal->text());
        $proxy->stop();
    }

    public function testAFiberThatHoldsAConnectionGetsATimeoutForAnother(): void
    {
        $pool = $this->pool(2, 0.5);
        $blocked = null;
        $work = function (Transaction $transaction) use ($pool, &$blocked): void {
            $transaction->execute("LOCK {$this->table}");
            $blocked = Async::run(
                fn(): mixed => $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [1])->value(),
            );
            $this->awaitLocked();
            $pool->query('SELECT $1::int', [1]);
        };
        $outcome = Outcome::of(static function () use ($pool, $work): void {
            $pool->transaction($work);
        });

        self::assertInstanceOf(PoolTimeoutException::class, $outcome, Outcome::describe($outcome));
        self::assertSame(1, $blocked?->await(new TimeoutCancellation(self::ENDS_WITHIN)));
        $pool->close();
    }

    /** Returns a pool that knows that the statements of this class are short. */
    private function pool(
        int $connections,
        float $acquireTimeout = self::ENDS_WITHIN,
        ?PostgresOptions $options = null,
    ): PostgresPool {
        $pool = new PostgresPool(
            $options ?? Cluster::shared()->dsn(),
            $connections,
            new PostgresPoolOptions(acquireTimeout: $acquireTimeout),
        );
        // After one slow run, which a busy machine may cause, fifty short ones are needed.
        for ($short = 0; $short < 55; ++$short) {
            $at = hrtime(true);
            $pool->query("SELECT 1 FROM {$this->table} WHERE i = \$1", [1]);
            $pool->query('SELECT $1::int', [1]);
            $pool->execute("UPDATE {$this->table} SET n = n WHERE i = \$1", [-1]);
            $pool->execute("UPDATE {$this->table} SET n = n + 1 WHERE i = \$1", [-1]);
            $short = hrtime(true) - $at > 45_000_000 ? -1 : $short;
        }

        return $pool;
    }

    private function awaitLocked(): void
    {
        Eventually::holds(
            fn(): bool => Cluster::ask(
                "SELECT 1 FROM pg_locks WHERE NOT granted AND (relation = '{$this->table}'::regclass "
                    . "OR locktype IN ('transactionid', 'tuple'))",
            ) !== [],
            'a statement waits for a lock',
        );
    }
}
