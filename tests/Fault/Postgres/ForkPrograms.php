<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;

use function Amp\delay;

/**
 * Programs with connections that fork; see {@see \Spindle\Tests\Host}. Each returns what works afterwards in the
 * process itself.
 */
final class ForkPrograms
{
    /** @return array<string, mixed> */
    public static function exit(string $dsn): array
    {
        [$connection, $pool] = self::open($dsn);
        $borrowed = $pool->acquire();
        $stream = $connection->stream('SELECT i FROM generate_series(1, 1000) AS i');
        $stream->current();
        $copy = $pool->copyTo("COPY (SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) AS i) TO STDOUT");
        $copy->current();
        $fork = self::fork(static fn() => exit(7));

        return [
            'exited' => $fork,
            'stream' => \count(iterator_to_array($stream, false)),
            'copy' => \count(iterator_to_array($copy, false)),
            'borrowed' => $borrowed->query('SELECT 5')->value(),
            ...self::asBefore($connection, $pool),
        ];
    }

    /** @return array<string, mixed> */
    public static function letGo(string $dsn): array
    {
        [$connection, $pool] = self::open($dsn);
        $borrowed = $pool->acquire();
        $stream = $connection->stream('SELECT i FROM generate_series(1, 1000) AS i');
        $stream->current();
        $held = new \ArrayObject([$stream, $borrowed, $pool, $connection]);
        unset($stream, $borrowed, $pool, $connection);
        $fork = self::fork(static function () use ($held): void {
            $held->exchangeArray([]);
            gc_collect_cycles();
            delay(0.02);
            exit(7);
        });
        [$stream, $borrowed, $pool, $connection] = $held;
        \assert(
            $stream instanceof \Generator
                && $borrowed instanceof PooledConnection
                && $pool instanceof PostgresPool
                && $connection instanceof PostgresConnection,
        );

        return [
            'exited' => $fork,
            'stream' => \count(iterator_to_array($stream, false)),
            'borrowed' => $borrowed->query('SELECT 5')->value(),
            ...self::asBefore($connection, $pool),
        ];
    }

    /** @return array<string, mixed> messages that the fork gets, by call, and what still works */
    public static function refuse(string $dsn, string $file): array
    {
        [$connection, $pool] = self::open($dsn);
        $borrowed = $pool->acquire();
        $stream = $connection->stream('SELECT i FROM generate_series(1, 1000) AS i');
        $stream->current();
        $outcome = $pool->transaction(
            static function (Transaction $transaction) use ($connection, $pool, $borrowed, $stream, $file): mixed {
                $fork = self::fork(
                    static function () use ($transaction, $connection, $pool, $borrowed, $stream, $file): void {
                        $calls = [
                            'transaction' => static fn() => $transaction->query('SELECT 1'),
                            'stream' => static fn() => iterator_to_array($stream),
                        ];
                        foreach ([
                            'connection' => $connection,
                            'pool' => $pool,
                            'borrowed' => $borrowed,
                        ] as $name => $link) {
                            $calls += [
                                "{$name}: query" => static fn() => $link->query('SELECT 1')->value(),
                                "{$name}: execute" => static fn() => $link->execute('SELECT 1'),
                                "{$name}: stream" => static fn() => iterator_to_array($link->stream('SELECT 1')),
                                "{$name}: copyTo" => static fn()
                                    => iterator_to_array($link->copyTo('COPY (SELECT 1) TO STDOUT')),
                                "{$name}: copyFrom" => static fn() => $link->copyFrom('COPY nothing FROM STDIN', []),
                                "{$name}: script" => static fn() => $link->executeScript('SELECT 1'),
                                "{$name}: transaction" => static fn() => $link->transaction(static fn(): int => 1),
                            ];
                        }
                        $calls['acquire'] = static fn() => $pool->acquire();
                        $outcome = array_map(self::describe(...), $calls);
                        foreach ([
                            $connection->close(...),
                            $pool->close(...),
                            $pool->kill(...),
                            $borrowed->release(...),
                        ] as $end) {
                            Outcome::of(static function () use ($end): void {
                                $end();
                            });
                        }
                        file_put_contents($file, json_encode($outcome, \JSON_THROW_ON_ERROR));
                        exit(7);
                    },
                );

                return [$fork, $transaction->query('SELECT 6')->value()];
            },
        );

        return [
            'told' => json_decode((string) file_get_contents($file), true),
            'transaction' => $outcome,
            'stream' => \count(iterator_to_array($stream, false)),
            'borrowed' => $borrowed->query('SELECT 5')->value(),
            ...self::asBefore($connection, $pool),
        ];
    }

    /** @return array<string, mixed> exceptions of a shared statement in the fork, repeatedly, and what still works */
    public static function refuseAfterIdleness(string $dsn, string $file, float $validateAfter): array
    {
        [$connection, $pool] = self::open(
            $dsn,
            new PostgresPoolOptions(minConnections: 2, validateAfter: $validateAfter),
        );
        self::fork(static function () use ($pool, $file): void {
            $outcome = array_map(
                static fn(): string
                    => get_debug_type(Outcome::of(static fn(): mixed => $pool->query('SELECT 1')->value())),
                range(1, 3),
            );
            file_put_contents($file, json_encode($outcome, \JSON_THROW_ON_ERROR));
            delay(0.02);
            exit(7);
        });

        return ['told' => json_decode((string) file_get_contents($file), true), ...self::asBefore($connection, $pool)];
    }

    /** @return array<string, mixed> */
    public static function turnTheLoop(string $dsn): array
    {
        [$connection, $pool] = self::open($dsn);
        $running = Async::run(static fn(): mixed => $connection->query('SELECT pg_sleep(0.2), 8 AS a')->one());
        $shared = Async::run(static fn(): mixed => $pool->query('SELECT pg_sleep(0.2), 9 AS a')->one());
        $heard = Async::run(static function () use ($connection): string {
            foreach ($connection->listen('forked') as $notification) {
                return $notification instanceof Notification ? $notification->payload : 'a gap';
            }

            return 'nothing';
        });
        delay(0.1);
        $fork = self::fork(static function () use ($dsn): void {
            $own = PostgresConnection::connect($dsn);
            $own->execute("NOTIFY forked, 'by the fork'");
            $own->close();
            delay(0.4);
            exit(7);
        });
        $limit = static fn(): TimeoutCancellation => new TimeoutCancellation(3, 'There is no outcome');

        return [
            'exited' => $fork,
            'running' => Outcome::describe(Outcome::of(static fn(): mixed => $running->await($limit()))),
            'shared' => Outcome::describe(Outcome::of(static fn(): mixed => $shared->await($limit()))),
            'heard' => Outcome::describe(Outcome::of(static fn(): mixed => $heard->await($limit()))),
            ...self::asBefore($connection, $pool),
        ];
    }

    /** @return array<string, mixed> */
    public static function cancel(string $dsn): array
    {
        [$connection, $pool] = self::open($dsn);
        $cancellation = new DeferredCancellation();
        $running = Async::run(
            static fn(): mixed
                => $connection->query('SELECT pg_sleep(0.3), 8 AS a', [], $cancellation->getCancellation())->one(),
        );
        $copy = $pool->copyTo("COPY (SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) AS i) TO STDOUT");
        $copy->current();
        delay(0.05);
        $held = new \ArrayObject([$copy]);
        unset($copy);
        $fork = self::fork(static function () use ($cancellation, $held): void {
            $cancellation->cancel();
            $held->exchangeArray([]);
            delay(0.1);
            exit(7);
        });
        [$copy] = $held;
        \assert($copy instanceof \Generator);

        return [
            'exited' => $fork,
            'running' => Outcome::describe(
                Outcome::of(static fn(): mixed => $running->await(new TimeoutCancellation(3))),
            ),
            'copy' => \count(iterator_to_array($copy, false)),
            ...self::asBefore($connection, $pool),
        ];
    }

    /**
     * @return list<string> outcome of a statement during which a fork ends the pool or the connection, for each end
     */
    public static function endDuringStatements(string $dsn): array
    {
        $ends = [
            static fn(PostgresConnection|PostgresPool $link) => $link->kill(),
            static fn(PostgresConnection|PostgresPool $link) => $link->close(),
            static fn(PostgresConnection|PostgresPool $link) => $link->close(new TimeoutCancellation(0.01)),
        ];
        $outcomes = [];
        foreach ($ends as $end) {
            foreach ([new PostgresPool($dsn, 1), PostgresConnection::connect($dsn)] as $link) {
                $running = Async::run(static fn(): mixed => $link->query('SELECT pg_sleep(0.3), 8 AS a')->one());
                delay(0.05);
                self::fork(static function () use ($end, $link): void {
                    $end($link);
                    delay(0.05);
                    posix_kill((int) getmypid(), \SIGKILL);
                });
                $outcomes[] = Outcome::describe(
                    Outcome::of(static fn(): mixed => $running->await(new TimeoutCancellation(3))),
                );
                $link->close();
            }
        }

        return $outcomes;
    }

    /**
     * Forks while a pool opens its connection: at several moments, since the moment of the login is unknown. The fork
     * kills the pool.
     *
     * @return list<string> outcomes of the statement that the parent process runs on the connection
     */
    public static function killWhileConnecting(string $dsn): array
    {
        $outcomes = [];
        foreach ([0.0, 0.001, 0.002, 0.003, 0.004, 0.006] as $pause) {
            $pool = new PostgresPool($dsn, 1);
            $running = Async::run(static fn(): mixed => $pool->query('SELECT 8 AS a')->one());
            delay($pause);
            self::fork(static function () use ($pool): void {
                $pool->kill();
                delay(0.01);
                posix_kill((int) getmypid(), \SIGKILL);
            });
            $outcomes[] = Outcome::describe(
                Outcome::of(static fn(): mixed => $running->await(new TimeoutCancellation(3))),
            );
            $pool->kill();
        }

        return $outcomes;
    }

    /** @param \Closure(): mixed $call */
    private static function describe(\Closure $call): string
    {
        $outcome = Outcome::of($call);

        return $outcome instanceof \Throwable && str_contains($outcome->getMessage(), 'fork of')
            ? 'refused'
            : Outcome::describe($outcome);
    }

    /** @return array{PostgresConnection, PostgresPool} */
    private static function open(string $dsn, ?PostgresPoolOptions $options = null): array
    {
        $pool = new PostgresPool($dsn, 4, $options);
        // The pool then knows that the query is short, so it shares a connection.
        $pool->query('SELECT 1');
        $pool->query('SELECT 1');

        return [PostgresConnection::connect($dsn), $pool];
    }

    /** @return array<string, mixed> */
    private static function asBefore(PostgresConnection $connection, PostgresPool $pool): array
    {
        return [
            'connection' => Outcome::describe(
                Outcome::of(static fn(): mixed => $connection->query('SELECT 3')->value()),
            ),
            'pool' => Outcome::describe(Outcome::of(static fn(): mixed => $pool->query('SELECT 1')->value())),
            'lost' => $pool->statistics()['lost_total'],
        ];
    }

    /**
     * @param \Closure(): void $work
     *
     * @return int its exit status
     */
    private static function fork(\Closure $work): int
    {
        $fork = pcntl_fork();
        if ($fork === 0) {
            try {
                $work();
            } catch (\Throwable $thrown) {
                fwrite(\STDERR, (string) $thrown);
            }
            exit(1);
        }
        pcntl_waitpid($fork, $status);

        return \is_int($status) ? (int) pcntl_wexitstatus($status) : -1;
    }
}
