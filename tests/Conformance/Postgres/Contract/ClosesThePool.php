<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\Future;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Http\Response;
use Spindle\Internal\CannotWaitException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;

/**
 * Tests how a pool begins and ends.
 *
 * @phpstan-require-extends PoolContract
 */
trait ClosesThePool
{
    public function testNumbersThatMakeNoSenseAreRefused(): void
    {
        foreach ([
            'maxConnections' => fn() => $this->pool(0),
            'minConnections' => fn() => $this->pool(2, minConnections: 3),
            'acquireTimeout' => static fn() => new PostgresPoolOptions(acquireTimeout: 0.0),
            'idleTimeout' => static fn() => new PostgresPoolOptions(idleTimeout: -1.0),
            'maxLifetime' => static fn() => new PostgresPoolOptions(maxLifetime: \NAN),
            'leakDetectionThreshold' => static fn() => new PostgresPoolOptions(leakDetectionThreshold: 0.0),
            'validateAfter' => static fn() => new PostgresPoolOptions(validateAfter: -0.1),
            'maxWaiting' => static fn() => new PostgresPoolOptions(maxWaiting: -1),
            'port' => static fn() => new PostgresPool('port=nonsense'),
        ] as $name => $work) {
            self::assertStringContainsString($name, self::thrown(\ValueError::class, $work)->getMessage());
        }
    }

    public function testAPoolThatIsClosedLendsNothing(): void
    {
        $pool = $this->pool(2);
        self::assertUsable($pool);
        self::assertFalse($pool->isClosed());
        $pool->close();
        $pool->close();

        self::assertTrue($pool->isClosed());
        foreach (self::verbs($pool) as $verb) {
            self::assertStringContainsString(
                'pool',
                self::thrown(ConnectionClosedException::class, $verb)->getMessage(),
            );
        }
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'its connections are closed at once');
    }

    public function testAPoolThatWasNeverUsedIsClosedAsWell(): void
    {
        $pool = $this->pool(2);
        $pool->close();
        self::thrown(ConnectionClosedException::class, static fn() => $pool->query('SELECT 1'));
    }

    public function testClosingFinishesRunningAndWaitingCalls(): void
    {
        $pool = $this->pool(3);
        $gate = new Gate();
        $connection = $pool->acquire();
        $transaction = Async::run(
            static fn(): mixed => $pool->transaction(static fn(Transaction $transaction): array => [
                $transaction->query($gate->statement())->value(),
                $transaction->transaction(static fn(Transaction $nested): mixed => $nested->query('SELECT 1')->value()),
                $pool->query('SELECT 2')->value(),
            ]),
        );
        $statement = Async::run(static fn(): mixed => $pool->query($gate->statement())->value());
        $waiting = [
            Async::run(static fn(): mixed => $pool->query('SELECT 3')->value()),
            Async::run(static fn(): PooledConnection => $pool->acquire()),
        ];
        $gate->awaitStatements(2);
        $closing = Async::run(static fn() => $pool->close());
        self::meanwhile();
        foreach (self::verbs($pool) as $verb) {
            self::thrown(ConnectionClosedException::class, $verb);
        }
        self::assertUsable($connection);
        $connection->transaction(self::assertUsable(...));
        self::assertFalse($closing->isComplete());
        $gate->open();

        self::assertSame('passed', $statement->await());
        self::assertSame(3, $waiting[0]->await());
        $borrowed = $waiting[1]->await();
        self::assertUsable($borrowed);
        $connection->release();
        self::assertSame(['passed', 1, 2], $transaction->await());
        self::assertFalse($closing->isComplete());
        $borrowed->release();
        $closing->await();
        self::assertStatistics(['in_use' => 0, 'idle' => 0, 'opening' => 0, 'waiting' => 0], $pool);
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'all connections are closed');
    }

    public function testClosingWaitsForTheNextAttemptOfATransaction(): void
    {
        $pool = $this->pool(1);
        $closing = null;
        $work = static function (Transaction $transaction) use ($pool, &$closing): mixed {
            if ($closing === null) {
                $closing = Async::run(static fn() => $pool->close());
                $transaction->executeScript("DO $$ BEGIN RAISE 'once' USING ERRCODE = 'deadlock_detected'; END $$");
            }
            self::assertFalse($closing->isComplete());

            return $transaction->query('SELECT 7')->value();
        };

        self::assertSame(7, $pool->transaction($work, retries: 1));
        $closing?->await();
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'all connections are closed');
    }

    public function testClosingWaitsForStreamsAndCopies(): void
    {
        $pool = $this->pool(3);
        $table = self::table('i int');
        $rows = $pool->stream('SELECT generate_series(1, 1000) AS i');
        self::assertSame(['i' => 1], $rows->current());
        $read = $pool->stream('SELECT generate_series(1, 1000) AS i');
        $read->rewind();
        $closing = null;
        $data = static function () use ($pool, &$closing): \Generator {
            yield [1];
            $closing = Async::run(static fn() => $pool->close());
            self::meanwhile();
            yield [$pool->query('SELECT 2')->value()];
        };
        unset($read);
        self::assertSame(2, $pool->copyFrom("COPY {$table} FROM STDIN", $data()));
        self::assertSame('(1) (2)', self::committed($table));
        self::meanwhile();
        self::assertFalse($closing?->isComplete());
        foreach ($rows as $row) {
            if ($row === ['i' => 2]) {
                self::assertUsable($pool);
            }
        }
        $closing->await();
        self::thrown(ConnectionClosedException::class, static fn() => $pool->query('SELECT 1'));
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'all connections are closed');
    }

    public function testServerSentEventsOfAStreamCanUseThePoolUntilTheStreamEnds(): void
    {
        $pool = $this->pool(2);
        $body = Response::serverSentEvents((static function () use ($pool): \Generator {
            foreach ($pool->stream('SELECT generate_series(1, 3) AS i') as $row) {
                yield json_encode($pool->query('SELECT $1::int', [$row['i']])->value(), \JSON_THROW_ON_ERROR);
            }
        })())->getBody();
        $events = $body->read(1000) . $body->read(1000);
        $closing = Async::run(static fn() => $pool->close());
        self::meanwhile();
        self::assertFalse($closing->isComplete());
        while (!$body->eof()) {
            $events .= $body->read(1000);
        }
        $closing->await();

        self::assertSame(":\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\n", $events);
    }

    public function testClosingWaitsForTheReleaseOfALostConnection(): void
    {
        $pool = $this->pool(1);
        $connection = $pool->acquire();
        self::terminate($connection->backendPid());
        self::thrown(ConnectionLostException::class, static fn() => $connection->query('SELECT 1'));
        $closing = Async::run(static fn() => $pool->close());
        self::meanwhile();
        self::assertFalse($closing->isComplete());
        $connection->release();
        $closing->await();
    }

    public function testAFiberCanCloseThePoolAfterItHasReturnedAllConnections(): void
    {
        $pool = $this->pool(2);
        $gate = new Gate();
        $connection = $pool->acquire();
        $statement = Async::run(static fn(): mixed => $connection->query($gate->statement())->value());
        $gate->awaitStatements(1);
        $connection->release();
        foreach ($pool->stream('SELECT generate_series(1, 1000)') as $_) {
            break; // the connection is returned by another fiber
        }
        EventLoop::delay(0.01, $gate->open(...));
        $pool->close();

        self::assertTrue($statement->isComplete());
        self::assertSame('passed', $statement->await());
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'all connections are closed');
    }

    public function testAFiberThatHasAConnectionCanNotWaitForTheEndOfThePool(): void
    {
        foreach ([
            static fn(PostgresPool $pool, \Closure $close): mixed => $pool->transaction($close),
            static function (PostgresPool $pool, \Closure $close): void {
                foreach ($pool->stream('SELECT 1') as $_) {
                    $close();
                }
            },
            static function (PostgresPool $pool, \Closure $close): void {
                $connection = $pool->acquire();
                $close();
                self::assertUsable($connection);
                $connection->release();
            },
        ] as $use) {
            $pool = $this->pool(1);
            $refused = 0;
            $use($pool, static function () use ($pool, &$refused): void {
                $thrown = self::thrown(\LogicException::class, static fn() => $pool->close());
                self::assertStringContainsString('wait for itself', $thrown->getMessage());
                ++$refused;
            });
            self::assertSame([false, 1], [$pool->isClosed(), $refused]);
            self::assertSame(1, $pool->query('SELECT 1')->value());
            $pool->close();
        }
    }

    public function testAPoolThatIsClosedWherePhpCanNotWaitEndsByItself(): void
    {
        if (!\function_exists('pcntl_signal')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $pool = $this->pool(1);
        $gate = new Gate();
        $statement = Async::run(static fn(): mixed => $pool->query($gate->statement())->value());
        $gate->awaitStatements(1);
        $this->inASignalHandler(static fn() => self::thrown(CannotWaitException::class, static fn() => $pool->close()));
        self::thrown(ConnectionClosedException::class, static fn() => $pool->query('SELECT 1'));
        $gate->open();

        self::assertSame('passed', $statement->await());
        Eventually::holds(fn(): bool => $this->backends() === [], 'its connection is closed');
        $this->inASignalHandler(static fn() => $pool->close());
    }

    public function testAFiberThatClosesAPoolIsNotGarbage(): void
    {
        self::assertSame('closed', Async::alone(function (): string {
            $pool = $this->pool(1);
            $borrower = new \stdClass();
            $borrower->itself = $borrower;
            Async::run(static fn() => $borrower->connection = $pool->acquire())->await();
            unset($borrower);
            EventLoop::delay(0.1, static fn() => null); // until PHP has collected the borrower as garbage
            $pool->close();

            return 'closed';
        }));
        self::assertCount(1, $this->warnings());
    }

    public function testKillingEndsRunningCalls(): void
    {
        $pool = $this->pool(2);
        $gate = new Gate();
        $connection = $pool->acquire();
        $futures = [
            Async::run(
                static fn(): mixed
                    => $pool->transaction(
                        static fn(Transaction $transaction): mixed => $transaction->query($gate->statement()),
                    ),
            ),
            Async::run(static fn(): mixed => $pool->query('SELECT 1')),
        ];
        $gate->awaitStatements(1);
        $pool->kill();
        $pool->kill();
        foreach ($futures as $future) {
            $ended = self::thrown(ConnectionClosedException::class, $future->await(...));
            self::assertStringContainsString('The pool of PostgreSQL connections is closed', $ended->getMessage());
        }
        self::thrown(ConnectionClosedException::class, static fn() => $connection->query('SELECT 1'));
        $connection->release();
        $gate->open();
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'all connections are closed');
    }

    public function testEndingWhileConnectionsAreOpenedLeavesNone(): void
    {
        foreach ([
            static fn(PostgresPool $pool) => $pool->kill(),
            static fn(PostgresPool $pool)
                => self::thrown(CancelledException::class, static fn() => $pool->close(new TimeoutCancellation(0.01))),
        ] as $end) {
            $proxy = FaultyProxy::before(Cluster::shared());
            $proxy->pause();
            $pool = new PostgresPool($this->throughProxy($proxy), 5);
            $futures = array_map(
                static fn(): Future => Async::run(static fn(): mixed => $pool->query('SELECT 1')),
                range(1, 5),
            );
            Eventually::holds(static fn(): bool => $proxy->connections === 5, 'five are begun');
            $end($pool);
            foreach ($futures as $future) {
                self::thrown(ConnectionClosedException::class, $future->await(...));
            }
            Eventually::holds(static fn(): bool => $pool->statistics()['opening'] === 0, 'all attempts have ended');
            $proxy->resume();
            Eventually::holds(static fn(): bool => $proxy->open() === 0, 'all are closed');
            self::assertSame(0, $pool->statistics()['opened_total']);
            $proxy->stop();
        }
    }

    public function testClosingFinishesCallsThatWaitForTheFirstConnection(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->pause();
        $pool = new PostgresPool($this->throughProxy($proxy), 2, new PostgresPoolOptions(minConnections: 2));
        $futures = array_map(
            static fn(int $i): Future => Async::run(static fn(): mixed => $pool->query("SELECT {$i}")->value()),
            range(1, 5),
        );
        Eventually::holds(static fn(): bool => $proxy->connections === 2, 'two are begun');
        EventLoop::delay(0.01, $proxy->resume(...));
        $pool->close();

        self::assertSame(range(1, 5), array_map(static fn(Future $future): mixed => $future->await(), $futures));
        Eventually::holds(static fn(): bool => $proxy->open() === 0, 'all are closed');
        $proxy->stop();
    }

    public function testAPoolThatIsLetGoIsClosed(): void
    {
        $pool = $this->pool(3, minConnections: 2);
        self::assertUsable($pool);
        Eventually::holds(static fn(): bool => $pool->statistics()['idle'] === 2, 'its connections are there');
        unset($pool);

        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'nobody turns the loop, and they are closed');
    }

    public function testRunningCallsKeepThePoolAlive(): void
    {
        $future = Async::run(fn(): mixed => $this->pool(1)->query("SELECT 'done' FROM pg_sleep(0.01)")->value());
        $rows = $this->pool(1)->stream('SELECT generate_series(1, 200) AS i');
        $connection = $this->pool(1)->acquire();
        gc_collect_cycles();

        self::assertSame('done', $future->await());
        self::assertCount(200, iterator_to_array($rows));
        self::assertUsable($connection);
        $connection->release();
    }

    public function testAnIdlePoolDoesNotKeepTheLoopRunning(): void
    {
        $pool = $this->pool(2, minConnections: 2);
        EventLoop::run();
        self::assertUsable($pool);
        EventLoop::run();
        $connection = $pool->acquire();
        EventLoop::run();
        $connection->release();
        EventLoop::run();
        self::assertUsable($pool);
    }

    public function testAForkOfThisProcessCanNotUseThePool(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('Needs ext-pcntl');
        }
        $pool = $this->pool(2);
        $borrowed = $pool->acquire();
        self::assertUsable($pool);
        [$here, $there] = \Spindle\Tests\Streams::pair();
        $pid = pcntl_fork();
        if ($pid === 0) {
            $refused = 0;
            foreach ([...self::verbs($pool), static fn() => $borrowed->query('SELECT 1')] as $verb) {
                try {
                    $verb();
                } catch (\LogicException $thrown) {
                    $refused += str_contains($thrown->getMessage(), 'fork') ? 1 : 0;
                }
            }
            fwrite($there, "{$refused}\n");
            // Releasing or closing in the fork must not close the parent's connection, nor wait for its release.
            $pool->close();
            $borrowed->release();
            $pool->kill();
            $verb = $borrowed = $pool = null;
            gc_collect_cycles();
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($pid, $status);

        \assert($borrowed !== null);
        self::assertSame((string) (\count(self::verbs($pool)) + 1), trim((string) fgets($here)));
        self::assertUsable($borrowed);
        $borrowed->release();
        self::assertUsable($pool);
        self::assertSame([2, 0], [$pool->statistics()['opened_total'], $pool->statistics()['lost_total']]);
    }
}
