<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Dns\DnsRecord;
use Amp\Future;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\ScriptedNames;

use function Amp\delay;
use function Amp\Dns\dnsResolver;
use function Amp\Future\await;

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

    /** @return list<mixed> exit status of a fork, result of a call, and whether the call has failed in the fork */
    public static function exitDuringACall(string $dsn, string $file): array
    {
        $pool = new PostgresPool($dsn, 1);
        $sql = 'SELECT 5, pg_sleep($1::float8)';
        $pool->query($sql, [0.0]);
        $call = Async::run(static function () use ($pool, $sql, $file): mixed {
            try {
                return $pool->query($sql, [0.3])->value();
            } catch (\Throwable $failure) {
                file_put_contents($file, (string) $failure);

                return null;
            }
        });
        Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 1, 'the query runs');

        return [self::fork(static fn() => exit(7)), $call->await(), is_file($file)];
    }

    /** @return array<string, mixed> */
    public static function exitWithPersistentConnections(string $dsn): array
    {
        [$connection, $pool] = self::open(PostgresOptions::fromDsn($dsn)->with(['persistent' => true]));

        return ['exited' => self::fork(static fn() => exit(7)), ...self::asBefore($connection, $pool)];
    }

    /** @return list<mixed> exit status of a fork, and whether the parent uses its session again */
    public static function exitAfterAHandover(string $dsn): array
    {
        $options = PostgresOptions::fromDsn($dsn)->with(['persistent' => true]);
        $connection = PostgresConnection::connect($options);
        $pid = $connection->backendPid();
        $connection->close();
        $fork = self::fork(static fn() => exit(7));

        return [$fork, PostgresConnection::connect($options)->backendPid() === $pid];
    }

    /** @return array<string, mixed> */
    public static function failFatally(string $dsn): array
    {
        [$connection, $pool] = self::open($dsn);
        $fork = self::fork(static function (): void {
            ini_set('memory_limit', '64M');
            fwrite(\STDERR, str_repeat('x', 1 << 30));
        });

        return ['exited' => $fork, ...self::asBefore($connection, $pool)];
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
        $heard = Async::run(static function () use ($connection): string {
            foreach ($connection->listen('forked') as $notification) {
                return $notification instanceof Notification ? $notification->payload : 'a gap';
            }

            return 'nothing';
        });
        $isListening = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle' AND query = 'LISTEN \"forked\"'";
        Eventually::holds(static fn(): bool => $pool->query($isListening)->count() > 0, 'the connection listens');
        $running = Async::run(static fn(): mixed => $connection->query('SELECT pg_sleep(0.2), 8 AS a')->one());
        $shared = Async::run(static fn(): mixed => $pool->query('SELECT pg_sleep(0.2), 9 AS a')->one());
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
    public static function shareListener(string $dsn): array
    {
        [$connection, $pool] = self::open($dsn);
        $hear = static fn(string $payload): Future => Async::run(static function () use ($pool, $payload): string {
            foreach ($pool->listenShared('forked') as $event) {
                if ($event instanceof Notification && $event->payload === $payload) {
                    return $payload;
                }
            }

            return 'nothing';
        });
        $notify = static function (PostgresConnection $connection, string $payload, Future $heard): string {
            while (!$heard->isComplete()) {
                $connection->query('SELECT pg_notify($1, $2)', ['forked', $payload]);
                delay(0.01);
            }

            return Outcome::describe(Outcome::of($heard->await(...)));
        };
        $last = $hear('last');
        $first = $notify($connection, 'first', $hear('first'));
        $fork = self::fork(static function () use ($dsn, $hear, $notify): void {
            $own = PostgresConnection::connect($dsn);
            exit($notify($own, 'in the fork', $hear('in the fork')) === '"in the fork"' ? 7 : 1);
        });

        return [
            'exited' => $fork,
            'first' => $first,
            'last' => $notify($connection, 'last', $last),
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

    /**
     * Forks while calls wait for the look-up of their host's name. The fork uses its own pool, and lets the look-up
     * continue.
     *
     * @return array<string, mixed> outcomes in the fork, outcomes in the process itself, and the rows
     */
    public static function lookUp(string $dsn, string $file): array
    {
        [$own, $options, $lookUp] = [self::open($dsn)[1], PostgresOptions::fromDsn($dsn), new DeferredFuture()];
        dnsResolver(new ScriptedNames(static function (Cancellation $cancellation) use ($lookUp): array {
            $lookUp->getFuture()->await($cancellation);

            return [new DnsRecord('127.0.0.1', DnsRecord::A)];
        }));
        $options = $options->with(['hosts' => [new PostgresHost('db.test', $options->hosts[0]->port)]]);
        $own->executeScript('DROP TABLE IF EXISTS forked; CREATE TABLE forked (name text)');
        [$pools, $insert] = [[new PostgresPool($options), new PostgresPool($options, 1)], self::insert(...)];
        $running = [
            'statement' => Async::run(static fn(): mixed => $insert($pools[0], 'statement')),
            'with a cancellation' => Async::run(static fn(): mixed => $pools[0]->query(
                "INSERT INTO forked VALUES ('with a cancellation') RETURNING name",
                [],
                new TimeoutCancellation(60),
            )->value()),
            'transaction' => Async::run(static fn(): mixed => $pools[1]->transaction(
                static fn(Transaction $transaction): mixed => $insert($transaction, 'transaction'),
            )),
            'second transaction' => Async::run(static fn(): mixed => $pools[1]->transaction(
                static fn(Transaction $transaction): mixed => $insert($transaction, 'second transaction'),
            )),
            'connection' => Async::run(
                static fn(): mixed => $insert(PostgresConnection::connect($options), 'connection'),
            ),
            'listen' => Async::run(static fn(): mixed => $pools[0]->listen('forked')->current()),
        ];
        Eventually::holds(
            static fn(): bool => array_column([$pools[0]->statistics(), $pools[1]->statistics()], 'opening') === [2, 1],
            'the pools open connections',
        );
        self::fork(static function () use ($dsn, $lookUp, $running, $file): void {
            $lookUp->complete();
            $own = new PostgresPool($dsn);
            $outcomes = array_map(
                static fn(Future $call): string => self::describe(
                    static fn(): mixed => $call->await(new TimeoutCancellation(3)),
                ),
                $running,
            );
            $outcomes['own'] = $own->query('SELECT 5')->value();
            file_put_contents($file, json_encode($outcomes, \JSON_THROW_ON_ERROR));
            posix_kill((int) getmypid(), \SIGKILL);
        });
        $lookUp->complete();
        Eventually::holds(
            static fn(): bool => $own->query('SELECT 1 FROM pg_stat_activity WHERE query = $1', ['LISTEN "forked"'])
                ->count() > 0,
            'the connection listens',
        );
        $own->execute("NOTIFY forked, 'heard'");
        $heard = $running['listen']->await();
        unset($running['listen']);

        return [
            'fork' => json_decode((string) file_get_contents($file), true),
            'process' => array_map(static fn(Future $call): mixed => $call->await(), $running),
            'heard' => $heard instanceof Notification ? $heard->payload : null,
            'rows' => $own->query('SELECT name FROM forked ORDER BY name')->column(),
        ];
    }

    /**
     * Forks while a pool waits for a host that does not answer, before it tries the next host.
     *
     * @return array<string, mixed> outcome in the fork, outcome in the process itself, and the rows
     */
    public static function tryTheNextHost(string $dsn, string $file): array
    {
        [$own, $options] = [self::open($dsn)[1], PostgresOptions::fromDsn($dsn)];
        $own->executeScript('DROP TABLE IF EXISTS forked; CREATE TABLE forked (name text)');
        $silent = stream_socket_server('tcp://127.0.0.1:0');
        \assert($silent !== false);
        $port = (int) substr((string) strrchr((string) stream_socket_get_name($silent, false), ':'), 1);
        $pool = new PostgresPool($options->with([
            'hosts' => [new PostgresHost('127.0.0.1', $port), ...$options->hosts],
            'connectTimeout' => 36_000.0,
        ]));
        $running = Async::run(static fn(): mixed => self::insert($pool, 'statement'));
        $accepted = Async::run(static function () use ($silent): mixed {
            $suspension = EventLoop::getSuspension();
            $watcher = EventLoop::onReadable($silent, static fn() => $suspension->resume());
            $suspension->suspend();
            EventLoop::cancel($watcher);

            return stream_socket_accept($silent);
        })->await();
        self::fork(static function () use ($running, $file): void {
            file_put_contents($file, self::describe(static fn(): mixed => $running->await(new TimeoutCancellation(9))));
            posix_kill((int) getmypid(), \SIGKILL);
        });

        return [
            'fork' => file_get_contents($file),
            'process' => $running->await(),
            'rows' => $own->query('SELECT name FROM forked')->column(),
        ];
    }

    /**
     * Forks while a transaction waits for the transaction of another fiber, which the fork ends.
     *
     * @return list<mixed> for a pool and for a connection: outcome in the fork, and an 'x' for each run of the function
     */
    public static function waitForATransaction(string $dsn, string $file): array
    {
        $outcomes = [];
        foreach ([new PostgresPool($dsn, 1), PostgresConnection::connect($dsn)] as $link) {
            $ran = "{$file}.ran";
            file_put_contents($ran, '');
            [$begun, $gate] = [new DeferredFuture(), new DeferredFuture()];
            $first = Async::run(static fn(): mixed => $link->transaction(static function () use ($begun, $gate): mixed {
                $begun->complete();

                return $gate->getFuture()->await();
            }));
            $second = Async::run(static fn(): mixed => $link->transaction(
                static fn(): mixed => file_put_contents($ran, 'x', \FILE_APPEND),
            ));
            $begun->getFuture()->await();
            self::fork(static function () use ($gate, $second, $file): void {
                $gate->complete();
                file_put_contents(
                    $file,
                    self::describe(static fn(): mixed => $second->await(new TimeoutCancellation(3))),
                );
                posix_kill((int) getmypid(), \SIGKILL);
            });
            $gate->complete();
            await([$first, $second]);
            $outcomes[] = [file_get_contents($file), file_get_contents($ran)];
        }

        return $outcomes;
    }

    private static function insert(PostgresLink $link, string $name): mixed
    {
        return $link->query("INSERT INTO forked VALUES ('{$name}') RETURNING name")->value();
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
    private static function open(string|PostgresOptions $dsn, ?PostgresPoolOptions $options = null): array
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
