<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use Revolt\EventLoop;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Tests that unreferenced objects are destroyed, and awaited ones are not, whenever the garbage collector runs. */
final class UnreferencedObjectsTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    private string $name;

    protected function setUp(): void
    {
        $this->name = 'let_go_' . bin2hex(random_bytes(4));
    }

    /** @return iterable<string, array{\Closure(PostgresLink): mixed, mixed}> */
    public static function work(): iterable
    {
        $slow = 'SELECT pg_sleep(0.005), i FROM generate_series(1, 20) AS i';
        yield 'a query' => [
            static fn(PostgresLink $link): mixed => $link->query('SELECT 7 AS a, pg_sleep(0.1)')->one(),
            ['a' => 7, 'pg_sleep' => ''],
        ];
        yield 'a parameter of a type that is to be asked for' => [
            static fn(PostgresLink $link): mixed => $link->query('SELECT $1::text, pg_sleep(0.1)', ['x'])->allNumeric(),
            [['x', '']],
        ];
        yield 'a transaction' => [
            static fn(PostgresLink $link): mixed => $link->transaction(
                static fn(Transaction $transaction): mixed
                    => $transaction->query('SELECT 7, pg_sleep(0.1)')->allNumeric(),
            ),
            [[7, '']],
        ];
        yield 'a transaction in a transaction' => [
            static fn(PostgresLink $link): mixed => $link->transaction(
                static fn(Transaction $outer): mixed => $outer->transaction(
                    static fn(Transaction $transaction): mixed
                        => $transaction->query('SELECT 7, pg_sleep(0.1)')->allNumeric(),
                ),
            ),
            [[7, '']],
        ];
        yield 'a stream' => [
            static fn(PostgresLink $link): mixed => \count(iterator_to_array($link->stream($slow), false)),
            20,
        ];
        yield 'copied out' => [
            static fn(PostgresLink $link): mixed
                => implode('', iterator_to_array($link->copyTo("COPY ({$slow}) TO STDOUT"), false)),
            "\t" . implode("\n\t", range(1, 20)) . "\n",
        ];
        yield 'copied in' => [static function (PostgresLink $link): int {
            $rows = static function (): \Generator {
                for ($i = 0; $i < 20; ++$i) {
                    delay(0.005);
                    yield "{$i}\n";
                }
            };

            return $link->transaction(static function (Transaction $transaction) use ($rows): int {
                $transaction->executeScript('CREATE TEMPORARY TABLE let_go (a int) ON COMMIT DROP');

                return $transaction->copyFrom('COPY let_go FROM STDIN', $rows());
            });
        }, 20];
        yield 'a script' => [static function (PostgresLink $link): void {
            $link->executeScript('SELECT pg_sleep(0.05); SELECT pg_sleep(0.05)');
        }, null];
    }

    /** @param \Closure(PostgresLink): mixed $work */
    #[DataProvider('work')]
    public function testWhatAFiberWaitsForIsDoneThoughOnlyThatFiberHoldsIt(\Closure $work, mixed $result): void
    {
        $dsn = $this->dsn();
        $collected = 0;
        $collector = EventLoop::repeat(0.01, static function () use (&$collected): void {
            gc_collect_cycles();
            ++$collected;
        });
        foreach ([
            PostgresConnection::connect(...),
            static fn(string $dsn): PostgresPool => new PostgresPool($dsn),
        ] as $make) {
            // Only the fiber references both, and only {main} the future.
            $future = Async::run(static fn(): mixed => $work($make($dsn)));
            self::assertEquals($result, $future->await());
        }
        EventLoop::cancel($collector);

        self::assertGreaterThan(5, $collected);
        $this->assertGone();
    }

    public function testNotificationsArriveThoughOnlyTheirFiberReferencesTheGenerator(): void
    {
        $heard = [];
        $future = $this->listener($heard);
        $isListening = "SELECT FROM pg_stat_activity WHERE application_name = '{$this->name}' AND state = 'idle'"
            . " AND query LIKE 'LISTEN%'";
        Eventually::holds(static fn(): bool => Cluster::ask($isListening) !== [], 'it listens');
        foreach (['first', 'second', 'third'] as $number => $payload) {
            delay(0.02);
            gc_collect_cycles();
            Cluster::ask("NOTIFY {$this->name}, '{$payload}'");
            Eventually::holds(static function () use (&$heard, $number): bool {
                return \count($heard) > $number;
            }, 'it is heard');
        }
        $future->await();
        self::assertSame(['first', 'second', 'third'], $heard);

        $this->assertGone();
    }

    /**
     * @param list<string> $heard
     *
     * @return Future<null>
     */
    private function listener(array &$heard): Future
    {
        $dsn = $this->dsn();
        $channel = $this->name;

        return Async::run(static function () use ($dsn, $channel, &$heard): null {
            foreach ((new PostgresPool($dsn))->listen($channel) as $notification) {
                $heard[] = $notification instanceof Notification ? $notification->payload : 'a gap';
                if (\count($heard) === 3) {
                    break;
                }
            }

            return null;
        });
    }

    /** @return iterable<string, array{\Closure(string): mixed}> */
    public static function held(): iterable
    {
        yield 'a connection' => [
            static fn(string $dsn): mixed
                => [$connection = PostgresConnection::connect($dsn), $connection->query('SELECT 1')],
        ];
        yield 'a pool' => [static fn(string $dsn): mixed => [$pool = new PostgresPool($dsn), $pool->query('SELECT 1')]];
        yield 'a pool with all that can be open' => [
            static fn(string $dsn): mixed => [
                $pool = new PostgresPool($dsn, 3, new PostgresPoolOptions(minConnections: 3)),
                $pool->query('SELECT 1'),
                $pool->query('SELECT 1'),
            ],
        ];
        yield 'a borrowed connection' => [static function (string $dsn): mixed {
            $pool = new PostgresPool($dsn, 1, new PostgresPoolOptions(onWarning: static fn() => null));
            $borrowed = $pool->acquire();
            $borrowed->query("SET application_name = '" . substr($dsn, (int) strrpos($dsn, 'let_go_')) . "'");

            return [$pool, $borrowed];
        }];
        foreach ([
            static fn(string $dsn): PostgresLink => PostgresConnection::connect($dsn),
            static fn(string $dsn): PostgresLink => new PostgresPool($dsn),
        ] as $number => $make) {
            $of = $number === 0 ? ' of a connection' : ' of a pool';
            yield "a stream that was begun{$of}" => [static function (string $dsn) use ($make): mixed {
                $stream = ($link = $make($dsn))->stream(
                    'SELECT i, pg_sleep(CASE WHEN i > 60 THEN 0.01 ELSE 0 END) FROM generate_series(1, 90) AS i',
                );

                return [$link, $stream, $stream->current()];
            }];
            yield "a stream that is quick{$of}" => [static function (string $dsn) use ($make): mixed {
                $stream = ($link = $make($dsn))->stream('SELECT i FROM generate_series(1, 100000) AS i');

                return [$link, $stream, $stream->current()];
            }];
            yield "a stream that was not begun{$of}" => [
                static fn(string $dsn): mixed
                    => [$link = $make($dsn), $link->query('SELECT 1'), $link->stream('SELECT 1')],
            ];
            yield "a copy that was begun{$of}" => [static function (string $dsn) use ($make): mixed {
                $copy = ($link = $make($dsn))->copyTo(
                    "COPY (SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) AS i) TO STDOUT",
                );

                return [$link, $copy, $copy->current()];
            }];
            yield "a result{$of}" => [
                static fn(string $dsn): mixed
                    => [$link = $make($dsn), $link->query('SELECT i FROM generate_series(1, 100) AS i')->getIterator()],
            ];
        }
        yield 'what is listened to' => [static function (string $dsn): mixed {
            $connection = PostgresConnection::connect($dsn);
            $heard = $connection->listen('let_go');
            // A notification is lost if it is sent before the server knows the listener.
            $notifying = EventLoop::repeat(0.05, static function () use ($connection): void {
                $connection->execute("NOTIFY let_go, 'first'");
            });
            $first = $heard->current();
            EventLoop::cancel($notifying);

            return [$connection, $heard, $first];
        }];
    }

    /** @param \Closure(string): mixed $make */
    #[DataProvider('held')]
    public function testUnreferencedObjectsAreDestroyed(\Closure $make): void
    {
        $held = $make($this->dsn());
        self::assertGreaterThan(0, $this->backends());
        unset($held);

        $this->assertGone();
    }

    /** @param \Closure(string): mixed $make */
    #[DataProvider('held')]
    public function testWhatOnlyACycleHoldsIsGoneWithTheCycle(\Closure $make): void
    {
        $cycle = new \stdClass();
        $cycle->itself = $cycle;
        $cycle->held = $make($this->dsn());
        unset($cycle);
        self::assertGreaterThan(0, $this->backends());
        gc_collect_cycles();

        $this->assertGone();
    }

    /** @param \Closure(string): mixed $make */
    #[DataProvider('held')]
    public function testAFiberThatIsNeverResumedReleasesWhatItHolds(\Closure $make): void
    {
        $dsn = $this->dsn();
        $fiber = null;
        // A fiber of a caller with its own scheduler, which then loses the fiber.
        $holds = false;
        Async::run(static function () use (&$fiber, &$holds, $make, $dsn): void {
            $fiber = \Fiber::getCurrent();
            $held = $make($dsn);
            $holds = true;
            $held = [$held, \Fiber::suspend()];
        });
        Eventually::holds(static function () use (&$holds): bool {
            return $holds;
        }, 'it holds it');
        self::assertGreaterThan(0, $this->backends());
        unset($fiber);
        gc_collect_cycles();

        $this->assertGone();
    }

    public function testATransactionWhoseFiberIsDestroyedIsRolledBackAndTheConnectionIsFreeForOthers(): void
    {
        Cluster::ask("CREATE TABLE {$this->name} (a int)");
        foreach ([
            PostgresConnection::connect($this->dsn()),
            new PostgresPool($this->dsn(), 1, new PostgresPoolOptions(onWarning: static fn() => null)),
        ] as $link) {
            $fiber = $this->fiberInATransaction($link);
            Eventually::holds(static fn(): bool => isset($fiber->fiber), 'it has inserted');
            unset($fiber);
            gc_collect_cycles();

            self::assertSame(1, $link->execute("INSERT INTO {$this->name} VALUES (2)"));
            self::assertSame([['a' => '2']], Cluster::ask("SELECT a FROM {$this->name}"), 'seen from outside at once');
            Cluster::ask("TRUNCATE {$this->name}");
        }
        unset($link);
        Cluster::ask("DROP TABLE {$this->name}");
        $this->assertGone();
    }

    public function testANestedTransactionWhoseFiberIsDestroyedIsRolledBackAndTheOuterOneGoesOn(): void
    {
        Cluster::ask("CREATE TABLE {$this->name} (a int)");
        foreach ([PostgresConnection::connect($this->dsn()), new PostgresPool($this->dsn(), 1)] as $link) {
            $link->transaction(function (Transaction $outer): void {
                $fiber = $this->fiberInATransaction($outer);
                Eventually::holds(static fn(): bool => isset($fiber->fiber), 'it has inserted');
                unset($fiber);
                gc_collect_cycles();
                $outer->execute("INSERT INTO {$this->name} VALUES (2)");
            });

            self::assertSame([['a' => '2']], Cluster::ask("SELECT a FROM {$this->name}"));
            Cluster::ask("TRUNCATE {$this->name}");
        }
        unset($link);
        Cluster::ask("DROP TABLE {$this->name}");
        $this->assertGone();
    }

    /** @return \stdClass its property is the only reference to the fiber */
    private function fiberInATransaction(PostgresLink $link): \stdClass
    {
        $holder = new \stdClass();
        $table = $this->name;
        $weak = \WeakReference::create($holder);
        Async::run(
            static fn() => $link->transaction(static function (Transaction $transaction) use ($table, $weak): void {
                $transaction->execute("INSERT INTO {$table} VALUES (1)");
                $holder = $weak->get();
                \assert($holder !== null);
                $holder->fiber = \Fiber::getCurrent();
                unset($holder);
                \Fiber::suspend();
            }),
        );

        return $holder;
    }

    public function testACopyWhoseFiberIsDestroyedCopiesNothingAndTheConnectionIsFreeForOthers(): void
    {
        Cluster::ask("CREATE TABLE {$this->name} (a int)");
        foreach ([PostgresConnection::connect($this->dsn()), new PostgresPool($this->dsn(), 1)] as $link) {
            $holder = new \stdClass();
            $weak = \WeakReference::create($holder);
            $rows = static function () use ($weak): \Generator {
                yield "1\n";
                yield str_repeat("1\n", 50_000);
                $holder = $weak->get();
                \assert($holder !== null);
                $holder->fiber = \Fiber::getCurrent();
                unset($holder);
                \Fiber::suspend();
            };
            $table = $this->name;
            Async::run(static fn() => $link->copyFrom("COPY {$table} FROM STDIN", $rows()));
            Eventually::holds(static fn(): bool => isset($holder->fiber), 'it copies');
            unset($holder, $rows);
            gc_collect_cycles();

            self::assertSame(1, $link->execute("INSERT INTO {$table} VALUES (2)"));
            self::assertSame([[2]], $link->query("SELECT a FROM {$table}")->allNumeric());
            Cluster::ask("TRUNCATE {$table}");
        }
        unset($link);
        Cluster::ask("DROP TABLE {$this->name}");
        $this->assertGone();
    }

    public function testAStreamFailsWhenTheGarbageCollectorClosesItsConnection(): void
    {
        $connection = PostgresConnection::connect($this->dsn());
        $stream = $connection->copyTo(
            "COPY (SELECT pg_sleep(0.02), repeat('x', 8000) FROM generate_series(1, 1000)) TO STDOUT",
        );
        $stream->current();
        $reading = Async::run(static function () use ($stream): int {
            $rows = 0;
            for (; $stream->valid(); $stream->next()) {
                ++$rows;
            }

            return $rows;
        });
        delay(0.05);
        $connection->kill();

        self::assertStringContainsString('is closed', Outcome::describe(Outcome::of($reading->await(...))));
        unset($connection, $stream);
        $this->assertGone();
    }

    public function testAStreamHoldsWhatItIsOf(): void
    {
        self::assertSame(
            [['a' => 1]],
            iterator_to_array(PostgresConnection::connect($this->dsn())->stream('SELECT 1 AS a')),
        );
        self::assertSame([['a' => 1]], iterator_to_array((new PostgresPool($this->dsn()))->stream('SELECT 1 AS a')));
        self::assertSame(
            ["1\n"],
            iterator_to_array(PostgresConnection::connect($this->dsn())->copyTo('COPY (SELECT 1) TO STDOUT')),
        );
        self::assertSame(
            ["1\n"],
            iterator_to_array((new PostgresPool($this->dsn()))->copyTo('COPY (SELECT 1) TO STDOUT')),
        );
        $pool = new PostgresPool($this->dsn(), 1, new PostgresPoolOptions(onWarning: static fn() => null));
        foreach ([
            static fn() => $pool->acquire()->stream('SELECT 1 AS a'),
            static fn() => $pool->acquire()->copyTo('COPY (SELECT 1) TO STDOUT'),
        ] as $rows) {
            self::assertCount(1, iterator_to_array($rows()));
        }
        $pool->close();
        $this->assertGone();
    }

    public function testAPoolThatIsLetGoWhileItsConnectionsAreOpenedOpensNone(): void
    {
        foreach (range(0, 20) as $milliseconds) {
            $pool = new PostgresPool($this->dsn(), 5, new PostgresPoolOptions(minConnections: 5));
            $query = Async::run(
                static fn(): mixed => Outcome::of(static fn(): mixed => $pool->query('SELECT 1')->value()),
            );
            delay($milliseconds / 1000);
            $pool->kill();
            unset($pool);
            $outcome = $query->await();
            self::assertContains(
                $outcome instanceof \Throwable ? $outcome->getMessage() : $outcome,
                [1, 'The pool of PostgreSQL connections is closed. Create another one'],
            );
        }
        $this->assertGone();
    }

    private function dsn(): string
    {
        return Cluster::shared()->dsn(application_name: $this->name);
    }

    private function backends(): int
    {
        return (int) Cluster::ask(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = '{$this->name}'",
        )[0]['n'];
    }

    private function assertGone(): void
    {
        Eventually::holds(fn(): bool => $this->backends() === 0, 'no connection is left');
    }
}
