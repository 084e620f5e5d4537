<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;

/**
 * Tests which caller gets a connection, and when.
 *
 * @phpstan-require-extends PoolContract
 */
trait LendsConnections
{
    public function testAConnectionIsLentToOneAtATime(): void
    {
        $pool = $this->pool(1);
        $first = $pool->acquire();
        $pid = $first->backendPid();
        $second = Async::run(static fn(): PooledConnection => $pool->acquire());
        self::meanwhile();
        self::assertFalse($second->isComplete());
        self::assertStatistics(['in_use' => 1, 'idle' => 0, 'waiting' => 1], $pool);
        $first->release();

        self::assertSame($pid, $second->await()->backendPid());
        $second->await()->release();
        self::assertUsable($pool);
    }

    public function testAReleasedConnectionThrows(): void
    {
        $pool = $this->pool(1);
        $connection = $pool->acquire();
        $connection->release();
        $connection->release();
        foreach ([
            static fn() => $connection->query('SELECT 1'),
            static fn() => $connection->execute('SELECT 1'),
            static fn() => iterator_to_array($connection->stream('SELECT 1')),
            static fn() => $connection->copyFrom('COPY nowhere FROM STDIN', []),
            static fn() => iterator_to_array($connection->copyTo('COPY (SELECT 1) TO STDOUT')),
            static fn() => $connection->executeScript('SELECT 1'),
            static fn() => $connection->transaction(static fn(): bool => true),
            static fn() => $connection->backendPid(),
        ] as $verb) {
            $message = self::thrown(\LogicException::class, $verb)->getMessage();
            self::assertStringContainsString('released to its pool', $message);
        }
        self::assertUsable($pool);
    }

    public function testWaitersAreServedInTheOrderOfArrival(): void
    {
        $pool = $this->pool(1);
        $connection = $pool->acquire();
        $order = [];
        $futures = [];
        for ($i = 0; $i < 100; ++$i) {
            $futures[] = Async::run(static function () use ($pool, $i, &$order): void {
                match ($i % 5) {
                    0 => $pool->query("SELECT {$i}"),
                    1 => $pool->transaction(static fn(Transaction $transaction) => $transaction->query('SELECT 1')),
                    2 => iterator_to_array($pool->stream('SELECT 1')),
                    3 => $pool->executeScript('SELECT 1'),
                    4 => $pool->acquire()->release(),
                };
                $order[] = $i;
            });
        }
        self::meanwhile();
        self::assertSame([100, []], [$pool->statistics()['waiting'], $order]);
        $connection->release();
        array_map(static fn(Future $future) => $future->await(), $futures);

        self::assertSame(range(0, 99), $order);
    }

    public function testBorrowersAmongManyShortStatementsAreServedInTime(): void
    {
        $pool = $this->pool(1);
        foreach (range(1, 3) as $_) {
            $pool->query('SELECT 1'); // known to be short
        }
        $stop = new DeferredCancellation();
        $count = 0;
        $flood = [];
        for ($i = 0; $i < 20; ++$i) {
            $flood[] = Async::run(static function () use ($pool, $stop, &$count): void {
                for (; !$stop->isCancelled(); ++$count) {
                    $pool->query('SELECT 1');
                }
            });
        }
        try {
            foreach (range(1, 5) as $_) {
                $before = $count;
                $pool->acquire()->release();
                self::assertSame(
                    1,
                    $pool->transaction(
                        static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1')->value(),
                    ),
                );
                self::assertLessThan($before + 500, $count);
            }
        } finally {
            $stop->cancel();
        }
        array_map(static fn(Future $future) => $future->await(), $flood);
        self::assertGreaterThan(0, $count);
    }

    public function testAFailureHasTheTraceOfItsCaller(): void
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($listener);
        $address = stream_socket_get_name($listener, false);
        fclose($listener);
        $pool = new PostgresPool("postgres://someone@{$address}/none", 1);
        self::assertFailsInItsCallers(ConnectionFailedException::class, static fn() => $pool->query('SELECT 1'));
        $pool->close();

        $pool = $this->pool(1, acquireTimeout: 0.5);
        Eventually::holds(static function () use ($pool): bool {
            try {
                return $pool->query('SELECT 1')->value() === 1;
            } catch (PostgresException) {
                return false; // the login is not finished
            }
        }, 'the pool has its connection');
        $connection = $pool->acquire();
        self::assertFailsInItsCallers(PoolTimeoutException::class, static fn() => $pool->query('SELECT 1'));
        $connection->release();
        $pool->close();

        $pool = $this->pool(2);
        $gate = new Gate();
        Async::run(static function () use ($gate, $pool): void {
            $gate->awaitStatements(2);
            $pool->kill();
        });
        self::assertFailsInItsCallers(
            ConnectionClosedException::class,
            static fn() => $pool->query($gate->statement()),
        );
        $gate->open();
    }

    public function testNoCallWaitsLongerThanAcquireTimeout(): void
    {
        $pool = $this->pool(1, acquireTimeout: 0.5);
        $connection = $pool->acquire();
        $futures = array_map(Async::run(...), self::verbs($pool));
        foreach ($futures as $future) {
            $message = self::thrown(PoolTimeoutException::class, $future->await(...))->getMessage();
            self::assertStringContainsString('within 0.5 s (in use: 1, being opened: 0, ', $message);
        }
        self::assertStatistics(['waiting' => 0, 'timed_out_total' => \count($futures)], $pool);
        $connection->release();
        self::assertUsable($pool);
    }

    public function testAFiberThatWaitsForItsOwnTransactionGetsATimeout(): void
    {
        $pool = $this->pool(1, acquireTimeout: 0.5);
        $pool->transaction(static function () use ($pool): void {
            $timeout = self::thrown(PoolTimeoutException::class, static fn() => $pool->query('SELECT 1'));
            self::assertStringContainsString('other calls that wait: 0)', $timeout->getMessage());
        });
        self::assertUsable($pool);
    }

    public function testAtMostMaxWaitingCallsWait(): void
    {
        $pool = $this->pool(1, maxWaiting: 2);
        $connection = $pool->acquire();
        $waiting = [
            Async::run(static fn(): mixed => $pool->query('SELECT 1')->value()),
            Async::run(static fn(): mixed => $pool->query('SELECT 2')->value()),
        ];
        self::meanwhile();
        foreach (self::verbs($pool) as $verb) {
            $message = self::thrown(PoolTimeoutException::class, $verb)->getMessage();
            self::assertStringContainsString('2 calls already wait', $message);
        }
        $connection->release();

        self::assertSame([1, 2], array_map(static fn(Future $future): mixed => $future->await(), $waiting));
        self::assertUsable($pool);
    }

    public function testTheErrorOfACallThatMayNotWaitCountsNoCallForWhichAConnectionIsOpened(): void
    {
        $pool = $this->pool(1, maxWaiting: 1);
        $calls = array_map(
            static fn(int $i): Future => Async::run(static fn(): mixed => $pool->query("SELECT {$i}")->value()),
            [1, 2, 3],
        );
        $message = self::thrown(PoolTimeoutException::class, $calls[2]->await(...))->getMessage();
        self::assertStringContainsString('1 call already waits', $message);

        self::assertSame([1, 2], [$calls[0]->await(), $calls[1]->await()]);
        self::assertUsable($pool);
    }

    public function testAConnectionIsOpenedAlsoIfNoCallMayWait(): void
    {
        $pool = $this->pool(3, maxWaiting: 0);
        self::assertSame(
            [1, 2, 3],
            array_map(
                static fn(Future $future): mixed => $future->await(),
                array_map(
                    static fn(int $i): Future => Async::run(static fn(): mixed => $pool->query("SELECT {$i}")->value()),
                    [1, 2, 3],
                ),
            ),
        );
        $borrowed = [$pool->acquire(), $pool->acquire(), $pool->acquire()];
        foreach (self::verbs($pool) as $verb) {
            $message = self::thrown(PoolTimeoutException::class, $verb)->getMessage();
            self::assertSame('All connections of the pool are in use or being opened, and maxWaiting is 0', $message);
        }
        foreach ($borrowed as $connection) {
            $connection->release();
        }
        self::assertSame(6, $pool->statistics()['acquired_total'], 'who was refused does not count');
    }

    public function testACancelledWaiterLeavesTheOthersTheirPlaces(): void
    {
        $pool = $this->pool(1);
        $connection = $pool->acquire();
        $source = new DeferredCancellation();
        $order = [];
        $futures = [];
        for ($i = 0; $i < 20; ++$i) {
            $cancellation = $i % 2 === 0 ? $source->getCancellation() : null;
            $futures[$i] = Async::run(static function () use ($pool, $i, $cancellation, &$order): void {
                $i % 4 < 2 ? $pool->query("SELECT {$i}", [], $cancellation) : $pool->acquire($cancellation)->release();
                $order[] = $i;
            });
        }
        self::meanwhile();
        $source->cancel(new \DomainException('enough'));
        foreach ($futures as $i => $future) {
            if ($i % 2 === 0) {
                self::assertSame(
                    'enough',
                    self::thrown(CancelledException::class, $future->await(...))->getPrevious()?->getMessage(),
                );
            }
        }
        self::assertSame(10, $pool->statistics()['waiting']);
        $connection->release();
        foreach ($futures as $i => $future) {
            if ($i % 2 !== 0) {
                $future->await();
            }
        }

        self::assertSame(range(1, 19, 2), $order);
    }

    public function testACallThatIsCancelledBeforehandTakesNoConnection(): void
    {
        $pool = $this->pool(1);
        $source = new DeferredCancellation();
        $source->cancel();
        foreach ([
            static fn() => $pool->acquire($source->getCancellation()),
            static fn() => $pool->query('SELECT 1', [], $source->getCancellation()),
            static fn() => $pool->transaction(static fn(): bool => true, cancellation: $source->getCancellation()),
        ] as $verb) {
            self::thrown(CancelledException::class, $verb);
        }
        self::assertSame([0, 0], [$pool->statistics()['in_use'], $pool->statistics()['waiting']]);
        self::assertUsable($pool);
    }

    public function testACancellationAtAnyMomentLosesNoConnection(): void
    {
        $pool = $this->pool(2);
        $random = new \Random\Randomizer(new \Random\Engine\Mt19937(\Spindle\Tests\Scale::seed()));
        for ($round = 0; $round < \Spindle\Tests\Scale::of(100); ++$round) {
            $futures = [];
            for ($i = 0; $i < 10; ++$i) {
                $source = new DeferredCancellation();
                \Revolt\EventLoop::delay($random->getInt(0, 3_000) / 1e6, static fn() => $source->cancel());
                $kind = $random->getInt(0, 3);
                $futures[] = Async::run(static function () use ($pool, $kind, $source): void {
                    try {
                        match ($kind) {
                            0 => $pool->query('SELECT pg_sleep(0.001)', [], $source->getCancellation()),
                            1 => $pool->transaction(
                                static fn(Transaction $transaction) => $transaction->query('SELECT 1'),
                                cancellation: $source->getCancellation(),
                            ),
                            2 => $pool->acquire($source->getCancellation())->release(),
                            3 => iterator_to_array($pool->stream(
                                'SELECT generate_series(1, 200)',
                                [],
                                $source->getCancellation(),
                            )),
                        };
                    } catch (CancelledException) {
                        // the failure is allowed
                    }
                });
            }
            array_map(static fn(Future $future) => $future->await(), $futures);
        }
        $both = [$pool->acquire(), $pool->acquire()];
        self::assertNotSame($both[0]->backendPid(), $both[1]->backendPid());
        foreach ($both as $connection) {
            self::assertUsable($connection);
            $connection->release();
        }
        Eventually::holds(
            static fn(): bool => [0, 2, 0, 0] === [
                $pool->statistics()['in_use'],
                $pool->statistics()['idle'],
                $pool->statistics()['opening'],
                $pool->statistics()['waiting'],
            ],
            'both are idle',
        );
    }

    public function testAStatementThatFailsGivesItsConnectionBack(): void
    {
        $pool = $this->pool(1, acquireTimeout: 1.0);
        foreach ([1, 2, 3] as $_) {
            self::assertSame(1, $pool->query('SELECT 1 / $1::int', [1])->value()); // known to be short, so shared
            foreach ([
                static fn() => $pool->query('SELECT 1 / $1::int', [0]),
                static fn() => $pool->query('SELECT 1 / $1::int', [[]]),
                static fn() => $pool->query('SELECT 1 / $1::int', []),
                static fn() => $pool->query('nonsense'),
                static fn() => iterator_to_array($pool->stream('SELECT 1 / 0')),
                static fn() => $pool->copyFrom('COPY nowhere FROM STDIN', ['']),
                static fn() => $pool->executeScript('SELECT 1 / 0'),
                static fn()
                    => $pool->transaction(static fn(Transaction $transaction) => $transaction->query('SELECT 1 / 0')),
            ] as $verb) {
                self::thrown(PostgresException::class, $verb);
                $pool->acquire()->release();
            }
        }
        self::assertSame(1, $pool->statistics()['opened_total']);
    }

    public function testATransactionKeepsItsConnection(): void
    {
        $pool = $this->pool(3);
        $others = [];
        $pids = $pool->transaction(static function (Transaction $transaction) use ($pool, &$others): array {
            $pids = [];
            for ($i = 0; $i < 20; ++$i) {
                $pids[] = self::integer($transaction->query('SELECT pg_backend_pid()')->value());
                $others[] = $pool->query('SELECT pg_backend_pid()')->value();
            }

            return $pids;
        });

        self::assertCount(1, array_unique($pids));
        self::assertNotContains($pids[0], $others);
    }

    /**
     * Makes the call in two fibers.
     *
     * @param class-string<\Throwable> $class
     */
    private static function assertFailsInItsCallers(string $class, \Closure $call): void
    {
        $callers = [
            Async::run(static fn(): \Throwable => self::thrown($class, $call)),
            Async::run(static fn(): \Throwable => self::thrown($class, $call)),
        ];
        [$first, $second] = [$callers[0]->await(), $callers[1]->await()];
        self::assertNotSame($first, $second);
        foreach ([$first, $second] as $failure) {
            self::assertContains('thrown', array_column($failure->getTrace(), 'function'));
        }
    }
}
