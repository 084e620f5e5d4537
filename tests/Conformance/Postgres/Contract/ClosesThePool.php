<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\Future;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionClosedException;
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
            'leakAfter' => static fn() => new PostgresPoolOptions(leakAfter: 0.0),
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

    public function testClosingLeavesRunningCalls(): void
    {
        $pool = $this->pool(2);
        $gate = new Gate();
        $connection = $pool->acquire();
        $running = Async::run(
            static fn(): mixed => $pool->transaction(
                static fn(Transaction $transaction): array
                    => [$transaction->query($gate->statement())->value(), $transaction->query('SELECT 1')->value()],
            ),
        );
        $waiting = [
            Async::run(static fn(): mixed => $pool->query('SELECT 1')),
            Async::run(static fn(): mixed => $pool->acquire()),
        ];
        $gate->awaitStatements(1);
        $pool->close();
        foreach ($waiting as $future) {
            self::thrown(ConnectionClosedException::class, $future->await(...));
        }
        self::assertUsable($connection);
        $gate->open();

        self::assertSame(['passed', 1], $running->await());
        $connection->release();
        Eventually::holds(fn(): bool => $this->backends() === [], 'each is closed when it is given back');
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
            self::thrown(ConnectionClosedException::class, $future->await(...));
        }
        self::thrown(ConnectionClosedException::class, static fn() => $connection->query('SELECT 1'));
        $connection->release();
        $gate->open();
        Eventually::holdsByItself(fn(): bool => $this->backends() === [], 'all connections are closed');
    }

    public function testClosingWhileConnectionsAreOpenedLeavesNone(): void
    {
        foreach (['close', 'kill'] as $end) {
            $proxy = FaultyProxy::before(Cluster::shared());
            $proxy->pause();
            $pool = new PostgresPool($this->throughProxy($proxy), 5);
            $futures = array_map(
                static fn(): Future => Async::run(static fn(): mixed => $pool->query('SELECT 1')),
                range(1, 5),
            );
            Eventually::holds(static fn(): bool => $proxy->connections === 5, 'five are begun');
            $end === 'kill' ? $pool->kill() : $pool->close();
            foreach ($futures as $future) {
                self::thrown(ConnectionClosedException::class, $future->await(...));
            }
            Eventually::holds(static fn(): bool => $pool->statistics()['opening'] === 0, 'none is opened any more');
            $proxy->resume();
            Eventually::holds(static fn(): bool => $proxy->open() === 0, 'all are closed');
            self::assertSame(0, $pool->statistics()['opened_total']);
            $proxy->stop();
        }
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
            // Releasing or closing in the fork must not close the parent's connection.
            $borrowed->release();
            $pool->close();
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
