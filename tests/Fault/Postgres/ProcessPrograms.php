<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Revolt\EventLoop;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\FreeDescriptors;

use function Amp\delay;
use function Amp\Future\await;

/** Programs that are killed, or lack descriptors; see {@see \Spindle\Tests\Host}. */
final class ProcessPrograms
{
    /** Reports its start, and makes the server work longer than the process lives. */
    public static function query(string $dsn, string $file): void
    {
        $pool = new PostgresPool($dsn, 3);
        $works = [
            static fn(): mixed => $pool->query('SELECT pg_sleep(1000)'),
            static fn(): mixed => $pool->transaction(
                static fn(Transaction $transaction): mixed => $transaction->query('SELECT pg_sleep(1000)'),
            ),
            static fn(): mixed => iterator_to_array(PostgresConnection::connect($dsn)->stream('SELECT pg_sleep(1000)')),
        ];
        $futures = array_map(Async::run(...), $works);
        delay(0);
        touch($file);
        await($futures);
    }

    /** Runs all kinds of work until it is killed. */
    public static function work(string $dsn): void
    {
        $pool = new PostgresPool($dsn, 4, new PostgresPoolOptions(onWarning: static fn() => null));
        $connection = PostgresConnection::connect($dsn);
        for (; ;) {
            await(array_map(Async::run(...), [
                static fn(): mixed => $pool->query('SELECT pg_sleep(0.01)'),
                static fn(): mixed => $pool->query('SELECT length($1::text)', [str_repeat('x', 1 << 20)]),
                static fn(): mixed => $connection->transaction(
                    static fn(Transaction $transaction): mixed
                        => $transaction->query('SELECT pg_advisory_xact_lock(1), pg_sleep(0.005)'),
                ),
                static fn(): mixed
                    => \count(iterator_to_array(
                        $pool->stream("SELECT repeat('x', 1000) FROM generate_series(1, 2000)"),
                        false,
                    )),
                static fn(): mixed => \count(iterator_to_array(
                    $pool->copyTo("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 2000)) TO STDOUT"),
                    false,
                )),
                static fn(): mixed => $pool->transaction(static function (Transaction $transaction): int {
                    $transaction->executeScript('CREATE TEMPORARY TABLE work (a text) ON COMMIT DROP');

                    return $transaction->copyFrom(
                        'COPY work FROM STDIN',
                        array_fill(0, 2000, str_repeat('x', 500) . "\n"),
                    );
                }),
                static fn(): mixed => $pool->acquire()->query("SET work_mem = '1MB'"),
                static fn(): mixed => Outcome::of(static fn(): mixed => $pool->query('SELECT 1 / 0')),
                static fn(): mixed => PostgresConnection::connect($dsn)->query('SELECT 1'),
            ]));
            gc_collect_cycles();
        }
    }

    /** @return list<string> outcomes of N concurrent queries, in a process with few descriptors */
    public static function needDescriptors(string $dsn, int $queries): array
    {
        self::loadClasses();
        $pool = new PostgresPool($dsn, 100, new PostgresPoolOptions(acquireTimeout: 20));

        return array_values(array_map(Outcome::describe(...), Outcome::ofAll(array_map(
            static fn(int $i): \Closure
                => static fn(): mixed => $pool->query("SELECT {$i} FROM pg_sleep(0.02)")->value(),
            range(1, $queries),
        ))));
    }

    /** @return array<string, string> */
    public static function useUpDescriptors(string $dsn): array
    {
        self::loadClasses();
        $pool = new PostgresPool($dsn, 3, new PostgresPoolOptions(acquireTimeout: 0.3));
        $said = [];
        $files = FreeDescriptors::useAll();
        $said['pool without'] = Outcome::describe(Outcome::of(static fn(): mixed => $pool->query('SELECT 1')->value()));
        $said['connection without'] = Outcome::describe(Outcome::of(
            static fn(): mixed => PostgresConnection::connect($dsn),
        ));
        array_pop($files);
        $files = [...$files, ...FreeDescriptors::useAll()];
        unset($files);
        $said['pool with'] = Outcome::describe(Outcome::of(static fn(): mixed => $pool->query('SELECT 2')->value()));
        $connection = PostgresConnection::connect($dsn);
        $files = FreeDescriptors::useAll();
        // Open connections go on; a cancellation has no descriptor for its request.
        $said['connection'] = Outcome::describe(
            Outcome::of(static fn(): mixed => $connection->query('SELECT 3')->value()),
        );
        $said['pool'] = Outcome::describe(Outcome::of(static fn(): mixed => $pool->query('SELECT 4')->value()));
        $said['cancelled'] = Outcome::describe(Outcome::of(
            static fn(): mixed => $connection->query('SELECT pg_sleep(5)', [], new \Amp\TimeoutCancellation(0.05)),
        ));
        $said['after the cancellation'] = Outcome::describe(Outcome::of(
            static fn(): mixed => $connection->query('SELECT 5')->value(),
        ));
        unset($files);
        $said['pool then'] = Outcome::describe(Outcome::of(static fn(): mixed => $pool->query('SELECT 6')->value()));

        return $said;
    }

    /** @return list<string> outcomes of first calls, when no descriptor is free to load a class */
    public static function startWithoutDescriptors(string $dsn): array
    {
        FreeDescriptors::useAll();
        $pool = new PostgresPool($dsn, 1, new PostgresPoolOptions(acquireTimeout: 0.3));
        $calls = [
            static fn(): mixed => $pool->query('SELECT 1')->value(),
            static fn(): mixed => $pool->transaction(static fn(): bool => true),
            static fn(): mixed => $pool->listen('a')->current(),
            static fn(): mixed => $pool->listenShared('a')->current(),
            static fn(): mixed => PostgresConnection::connect($dsn),
        ];
        Outcome::describe(Outcome::of(static fn(): bool => true));
        class_exists(PostgresConnection::class);
        $files = FreeDescriptors::useAll();
        $outcomes = array_map(Outcome::of(...), $calls);
        unset($files);

        return array_map(Outcome::describe(...), $outcomes);
    }

    /**
     * @return list<string> outcomes of calls on a connection, when no descriptor is free to load the classes that
     *     report their failure
     */
    public static function failWithoutDescriptors(string $dsn): array
    {
        $connection = PostgresConnection::connect($dsn);
        $other = PostgresConnection::connect($dsn);
        $calls = [
            static fn(): mixed => $connection->query('SELECT $1::int', ['x']),
            static fn(): mixed => $connection->query('SELECT pg_sleep(5)', [], new \Amp\TimeoutCancellation(0.05)),
            static fn(): mixed => $connection->query('SELECT 5'),
            static function () use ($other): void {
                $other->close();
                $other->query('SELECT 6');
            },
        ];
        $failTransaction = static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1 / $1::int', [0]);
        array_unshift($calls, static fn(): mixed => $other->transaction($failTransaction));
        $connection->query('SELECT $1::int', ['1']);
        $other->transaction(static fn(Transaction $transaction): mixed => $transaction->query('SELECT 1'));
        Outcome::describe(Outcome::of(static fn(): bool => true));
        $files = FreeDescriptors::useAll();
        $outcomes = array_map(Outcome::of(...), $calls);
        unset($files);

        return array_map(Outcome::describe(...), $outcomes);
    }

    /** @return list<string> outcomes of the first statements of a pool, when no descriptor is free to load classes */
    public static function executeWithoutDescriptors(string $dsn): array
    {
        $pool = new PostgresPool($dsn, 1);
        $pool->acquire()->release();
        $values = "SELECT '2026-01-01'::date, '{1}'::int[], '{}'::jsonb, '[1,2)'::int4range, '1 day'::interval,"
            . " 1::bit(8), 1.5::numeric, '\\x00'::bytea, true, 1.5::float4, '{[1,2)}'::int4multirange";
        $calls = [
            static fn(): mixed => $pool->query("SELECT 1 FROM pg_class WHERE relname = 'pg_class'")->value(),
            static fn(): int => \count($pool->query($values)->one() ?? []),
            static fn(): int => \count(iterator_to_array($pool->stream('SELECT 1'))),
            static fn(): int => \count(iterator_to_array($pool->copyTo('COPY (SELECT 1) TO STDOUT'))),
            static fn(): mixed => $pool->transaction(static fn(Transaction $one) => $one->query('SELECT 1')->value()),
            static fn(): int => $pool->copyFrom('COPY pg_temp.t FROM STDIN', [[1]]),
            static function () use ($pool): int {
                $pool->executeScript('SELECT 1; SELECT 2');

                return 1;
            },
            static function () use ($pool): mixed {
                $connection = $pool->acquire();
                try {
                    return $connection->query('SELECT 1')->value();
                } finally {
                    $connection->release();
                }
            },
        ];
        foreach (['23502', '23503', '23505', '23514', '23P01', '40001', '40P01', '57014'] as $code) {
            $raise = "DO $$ BEGIN RAISE 'raised' USING ERRCODE = '{$code}'; END $$";
            $calls[] = static fn(): int => $pool->execute($raise);
        }
        Outcome::describe(Outcome::of(static fn(): bool => true));
        $files = FreeDescriptors::useAll();
        $outcomes = array_map(Outcome::of(...), $calls);
        unset($files);

        return array_map(Outcome::describe(...), $outcomes);
    }

    /** @return list<string> outcome of a first transaction, whose function uses up the descriptors; number of rows */
    public static function commitWithoutDescriptors(string $dsn): array
    {
        $connection = PostgresConnection::connect($dsn);
        $connection->execute('CREATE TEMPORARY TABLE t (id int)');
        Outcome::describe(Outcome::of(static fn(): bool => true));
        $files = [];
        $outcome = Outcome::of(static fn(): mixed => $connection->transaction(
            static function (Transaction $transaction) use (&$files): string {
                $transaction->execute('INSERT INTO t VALUES (1)');
                $files = FreeDescriptors::useAll();

                return 'committed';
            },
        ));
        $files = [];
        $count = Outcome::of(static fn(): mixed => $connection->query('SELECT count(*) FROM t')->value());

        return [Outcome::describe($outcome), Outcome::describe($count)];
    }

    /** @return list<string> number of streamed rows without descriptors; outcome of close() */
    public static function closeWithoutDescriptors(string $dsn): array
    {
        $pool = new PostgresPool($dsn, 1);
        $pool->query('SELECT 1');
        Outcome::describe(Outcome::of(static fn(): bool => true));
        $files = FreeDescriptors::useAll();
        $count = Outcome::of(
            static fn(): int => iterator_count($pool->stream('SELECT generate_series(1, 5000)')),
        );
        $end = Outcome::of(static function () use ($pool): string {
            $pool->close();

            return 'closed';
        });
        unset($files);

        return [Outcome::describe($count), Outcome::describe($end)];
    }

    /** @return array<string, string> outcomes with descriptors that select() can't watch, by event loop driver */
    public static function useHighDescriptors(string $dsn): array
    {
        self::loadClasses();
        $said = ['driver' => EventLoop::getDriver()::class];
        $pool = new PostgresPool($dsn, 3, new PostgresPoolOptions(acquireTimeout: 1.0));
        $said['before'] = Outcome::describe(Outcome::of(static fn(): mixed => $pool->query('SELECT 1')->value()));
        $files = array_map(static fn(): mixed => fopen('/dev/null', 'r'), range(1, 1100));
        $said['pool'] = Outcome::describe(Outcome::of(
            static fn(): mixed => Outcome::ofAll(
                [
                    static fn(): mixed => $pool->query('SELECT 2')->value(),
                    static fn(): mixed => $pool->query('SELECT 3 FROM pg_sleep(0.05)')->value(),
                ],
            ),
        ));
        $said['connection'] = Outcome::describe(Outcome::of(
            static fn(): mixed => PostgresConnection::connect($dsn)->query('SELECT 4')->value(),
        ));
        unset($files);
        $said['after'] = Outcome::describe(Outcome::of(static fn(): mixed => $pool->query('SELECT 5')->value()));
        $said['connection after'] = Outcome::describe(Outcome::of(
            static fn(): mixed => PostgresConnection::connect($dsn)->query('SELECT 6')->value(),
        ));

        return $said;
    }

    /** Loads classes in advance, because a class file needs a descriptor as well. */
    private static function loadClasses(): void
    {
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(
            \dirname(__DIR__, 3) . '/src/Postgres',
            \FilesystemIterator::SKIP_DOTS,
        )) as $file) {
            \assert($file instanceof \SplFileInfo);
            $class = 'Spindle\\Postgres\\'
                . strtr(substr($file->getPathname(), \strlen(\dirname(__DIR__, 3) . '/src/Postgres/'), -4), '/', '\\');
            if (ctype_upper($file->getFilename()[0])) {
                class_exists($class);
            }
        }
        foreach ([
            PoolTimeoutException::class,
            \Spindle\Internal\WeakTimer::class,
            \Amp\TimeoutCancellation::class,
            \Amp\TimeoutException::class,
            \Amp\CancelledException::class,
            \Spindle\Internal\Backoff::class,
            \Spindle\Internal\Warnings::class,
        ] as $class) {
            class_exists($class);
        }
        Outcome::describe(Outcome::ofAll([static fn(): never => throw new \DomainException('for its classes')]));
        Outcome::of(static fn() => delay(1, cancellation: new \Amp\TimeoutCancellation(0)));
    }
}
