<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\Future;
use Spindle\Postgres\PostgresPool;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;

use function Amp\delay;

/**
 * Tests how many connections a pool keeps.
 *
 * @phpstan-require-extends PoolContract
 */
trait KeepsConnections
{
    public function testAConnectionIsOpenedWhenItIsNeededAndUsedAgain(): void
    {
        $pool = $this->pool(5);
        self::assertSame([], $this->backends());
        $pids = [];
        for ($i = 0; $i < 10; ++$i) {
            $pids[] = self::integer($pool->query('SELECT pg_backend_pid()')->value());
            $pids[] = self::integer($pool->query("SELECT pg_backend_pid() WHERE {$i} = {$i}")->value());
        }

        self::assertSame([$pids[0]], array_values(array_unique($pids)));
        self::assertSame($pids[0], array_key_first($this->backends()));
        self::assertStatistics(['in_use' => 0, 'idle' => 1, 'opened_total' => 1], $pool);
    }

    public function testConnectionsAreOpenedSideBySide(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->pause();
        $pool = new PostgresPool($this->throughProxy($proxy), 5);
        $futures = array_map(
            static fn(int $i): Future => Async::run(static fn(): mixed => $pool->query("SELECT {$i}")->value()),
            range(1, 8),
        );
        Eventually::holds(static fn(): bool => $proxy->connections === 5, 'five are begun before any is open');
        self::assertStatistics(['opening' => 5, 'waiting' => 8, 'opened_total' => 0], $pool);
        $proxy->resume();

        self::assertSame(range(1, 8), array_map(static fn(Future $future): mixed => $future->await(), $futures));
        self::assertSame(5, $proxy->connections);
        $pool->kill();
        $proxy->stop();
    }

    public function testThereAreNoMoreConnectionsThanMaxConnections(): void
    {
        $pool = $this->pool(3);
        $gate = new Gate();
        $futures = array_map(
            static fn(): Future => Async::run(static fn(): mixed => $pool->query($gate->statement())->value()),
            range(1, 20),
        );
        $gate->awaitStatements(3);
        self::meanwhile();
        self::assertSame(3, $gate->waiting());
        self::assertCount(3, $this->backends());
        self::assertStatistics(
            [
                'in_use' => 3,
                'max' => 3,
                'idle' => 0,
                'opening' => 0,
                'waiting' => 17,
                'acquired_total' => 3,
                'timed_out_total' => 0,
                'opened_total' => 3,
                'lost_total' => 0,
            ],
            $pool,
        );
        $gate->open();

        self::assertSame(
            array_fill(0, 20, 'passed'),
            array_map(static fn(Future $future): mixed => $future->await(), $futures),
        );
        self::assertCount(3, $this->backends());
        self::assertSame(3, $pool->statistics()['opened_total']);
    }

    public function testMinConnectionsStayOpen(): void
    {
        $pool = $this->pool(5, minConnections: 3, idleTimeout: 0.03);
        self::assertSame([], $this->backends(), 'none before it is used');
        self::assertUsable($pool);
        Eventually::holds(fn(): bool => \count($this->backends()) === 3, 'three are there');
        $borrowed = array_map(static fn() => $pool->acquire(), range(1, 5));
        self::assertCount(5, $this->backends());
        foreach ($borrowed as $connection) {
            $connection->release();
        }
        Eventually::holds(fn(): bool => \count($this->backends()) === 3, 'those beyond are closed');
        self::terminate((int) array_key_first($this->backends()));
        self::meanwhile();
        self::assertUsable($pool);
        Eventually::holds(fn(): bool => \count($this->backends()) === 3, 'the one that was lost is replaced');
    }

    public function testThoseThatStayAreReplacedAfterTheirTimeToo(): void
    {
        $pool = $this->pool(3, minConnections: 2, maxLifetime: 0.05, idleTimeout: \INF);
        self::assertUsable($pool);
        Eventually::holds(
            static fn(): bool => $pool->statistics()['opened_total'] >= 6,
            'they are replaced, and again, though nobody asks for any',
        );
        Eventually::holds(fn(): bool => \count($this->backends()) === 2, 'two are there');
    }

    public function testAnIdleConnectionIsClosed(): void
    {
        $pool = $this->pool(3, idleTimeout: 0.03);
        $pids = array_map(
            static fn(): Future
                => Async::run(
                    static fn(): mixed => $pool->query('SELECT pg_backend_pid() FROM pg_sleep(0.002)')->value(),
                ),
            range(1, 3),
        );
        array_map(static fn(Future $future): mixed => $future->await(), $pids);
        self::assertNotSame([], $this->backends());
        Eventually::holds(fn(): bool => $this->backends() === [], 'all are closed');

        self::assertSame([0, 0], [$pool->statistics()['in_use'], $pool->statistics()['idle']]);
        self::assertUsable($pool);
    }

    public function testAConnectionThatIsUsedStaysWhateverItsIdleTimeout(): void
    {
        $pool = $this->pool(1, idleTimeout: 0.02);
        $connection = $pool->acquire();
        $pid = $connection->backendPid();
        $connection->query('SELECT pg_sleep(0.08)');

        self::assertSame($pid, $connection->query('SELECT pg_backend_pid()')->value());
        $connection->release();
    }

    public function testAConnectionIsReplacedAfterItsTime(): void
    {
        $pool = $this->pool(1, maxLifetime: 0.05);
        $connection = $pool->acquire();
        $pid = $connection->backendPid();
        $connection->query('SELECT pg_sleep(0.08)');
        self::assertSame($pid, $connection->query('SELECT pg_backend_pid()')->value(), 'not while it is used');
        $connection->release();

        self::assertNotSame($pid, $pool->query('SELECT pg_backend_pid()')->value());
        self::assertSame(2, $pool->statistics()['opened_total']);
        self::assertSame(0, $pool->statistics()['lost_total']);
    }

    public function testTheAgeOfAnIdleConnectionEndsItToo(): void
    {
        $pool = $this->pool(1, maxLifetime: 0.05, idleTimeout: \INF);
        self::assertUsable($pool);
        Eventually::holds(fn(): bool => $this->backends() === [], 'it is closed');
        self::assertUsable($pool);
    }

    public function testStatisticsTellWhatHappened(): void
    {
        $pool = $this->pool(2, acquireTimeout: 0.5);
        $statistics = $pool->statistics();
        self::assertSame(2, $statistics['max']);
        self::assertSame(2.0, array_sum($statistics), 'all others are 0');

        $both = [$pool->acquire(), $pool->acquire()];
        self::thrown(\Spindle\Postgres\PoolTimeoutException::class, static fn() => $pool->acquire());
        $waiting = Async::run(static fn(): mixed => $pool->query('SELECT 1'));
        delay(0);
        self::assertSame(1, $pool->statistics()['waiting']);
        $both[0]->release();
        $waiting->await();
        self::terminate($both[1]->backendPid());
        self::meanwhile();
        $both[1]->release();
        self::assertStatistics(
            ['acquired_total' => 3, 'timed_out_total' => 1, 'opened_total' => 2, 'lost_total' => 1],
            $pool,
        );
        self::assertStatistics(['in_use' => 0, 'idle' => 1, 'opening' => 0, 'waiting' => 0], $pool);
        $statistics = $pool->statistics();
        self::assertSame(
            3,
            $statistics['wait_seconds_le_inf_total'],
            'two waits until a connection was opened, and one until a connection was released',
        );
        self::assertGreaterThan(0.0, $statistics['wait_seconds_total']);
        self::assertLessThanOrEqual(3, $statistics['wait_seconds_le_0.001_total']);
    }
}
