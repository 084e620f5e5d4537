<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Revolt\EventLoop;
use Spindle\Postgres\Isolation;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\Result;
use Spindle\Postgres\TlsMode;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Fault\Postgres\ComesToRest;
use Spindle\Tests\Fault\Postgres\Outcome;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Whatever a server sends, each call soon ends with a result or with an exception of the client, and leaks nothing. */
final class ServerFuzzTest extends TidyTestCase
{
    use ComesToRest;

    /** Turns of the loop in which a client makes progress, and in which it ends after its connection was closed. */
    private const TURNS = 12;
    private const TURNS_TO_END = 200;

    private FuzzServer $fuzz;

    private FakeServer $server;

    protected function setUp(): void
    {
        mt_srand(Scale::seed());
        $this->fuzz = new FuzzServer();
        $this->server = FakeServer::start(function (FakeConnection $client): void {
            $this->fuzz->serve($client);
        });
        set_error_handler(
            static fn(int $level, string $message, string $file, int $line): bool => (error_reporting() & $level) !== 0
                ? throw new \ErrorException($message, 0, $level, $file, $line)
                : true,
        );
    }

    protected function tearDown(): void
    {
        restore_error_handler();
        $this->server->stop();
        unset($this->server, $this->fuzz);
    }

    public function testWhatAServerSaysInAnyPiecesIsUnderstood(): void
    {
        $calls = self::calls();
        foreach (Scale::rounds(atLeast: 200) as $_) {
            $this->fuzz = new FuzzServer();
            $this->fuzz->longest = [1, 3, 20, 1000][mt_rand(0, 3)];
            [$name, $call] = $calls[mt_rand(0, \count($calls) - 1)];
            $outcome = $this->outcome($call, null, false);
            if ($name === 'error') {
                self::assertInstanceOf(PostgresException::class, $outcome);
                self::assertSame('division by zero (SQLSTATE 22012)', $outcome->getMessage());
            } else {
                self::assertNotInstanceOf(\Throwable::class, $outcome, "{$name}: " . Outcome::describe($outcome));
            }
        }
    }

    public function testAnyBytesOfAServerLeadToAResultOrATypedException(): void
    {
        foreach (Scale::rounds(0.1, 100) as $round) {
            $this->round($round);
        }
        gc_collect_cycles();
        $memory = memory_get_usage();
        memory_reset_peak_usage();
        $rounds = 0;
        $outcomes = [];
        foreach (Scale::rounds(0.9, 1_000) as $round) {
            $rounds = $round;
            $kind = $this->round($round);
            $outcomes[$kind] = ($outcomes[$kind] ?? 0) + 1;
            if ($round % 1_000 === 0) {
                // Without this the result would depend on when PHP collects garbage by itself.
                gc_collect_cycles();
            }
        }
        gc_collect_cycles();
        $allowed = min(1_500_000, 250_000 + 100 * $rounds);
        self::assertLessThan($allowed, memory_get_usage() - $memory, 'bytes more than after the first rounds');
        self::assertLessThan(16 << 20, memory_get_peak_usage() - $memory, 'bytes at any time');
        foreach ([
            'value',
            'Spindle\Postgres\ConnectionLostException',
            'Spindle\Postgres\ConnectionFailedException',
            'Spindle\Postgres\QueryException',
            'Spindle\Postgres\ProtocolException',
            CancelledException::class,
        ] as $kind) {
            self::assertGreaterThan(
                $rounds / 2000,
                $outcomes[$kind] ?? 0,
                "{$kind}: " . json_encode($outcomes, \JSON_THROW_ON_ERROR),
            );
        }
    }

    /** @return string outcome: "value" or the class of an exception */
    private function round(int $round): string
    {
        $calls = self::calls();
        $this->fuzz = new FuzzServer();
        $this->fuzz->longest = [1, 10, 100, 5000][mt_rand(0, 3)];
        $this->fuzz->oneIn = [1, 2, 4, 8][mt_rand(0, 3)];
        $this->fuzz->isPlain = mt_rand(0, 3) === 0;
        [$name, $call] = $calls[mt_rand(0, \count($calls) - 1)];
        $cancellation = mt_rand(0, 9) === 0 ? new DeferredCancellation() : null;
        if ($cancellation !== null) {
            self::afterTurns(mt_rand(0, 8), $cancellation->cancel(...));
        }
        try {
            $outcome = $this->outcome($call, $cancellation?->getCancellation(), true);
        } catch (\Throwable $thrown) {
            throw new \RuntimeException(
                "Round {$round} with the seed " . Scale::seed() . ", {$name}: {$thrown->getMessage()}",
                0,
                $thrown,
            );
        }
        if (
            $outcome instanceof \Throwable
            && !$outcome instanceof PostgresException
            && !$outcome instanceof CancelledException
            && !self::isTheServersDoing($outcome)
        ) {
            self::fail(
                "Round {$round} with the seed "
                    . Scale::seed()
                    . ", {$name}: "
                    . Outcome::describe($outcome)
                    . "\n{$outcome->getTraceAsString()}",
            );
        }

        return $outcome instanceof \Throwable ? $outcome::class : 'value';
    }

    /** @param \Closure(): void $do */
    private static function afterTurns(int $turns, \Closure $do): void
    {
        EventLoop::defer(static fn() => $turns === 0 ? $do() : self::afterTurns($turns - 1, $do));
    }

    /** Whether the server caused a LogicException, by starting a COPY or a transaction without a request for it. */
    private static function isTheServersDoing(\Throwable $outcome): bool
    {
        return $outcome instanceof \LogicException
            && preg_match('/COPY|has begun a transaction|transaction has ended/', $outcome->getMessage()) === 1;
    }

    /** @param \Closure(PostgresConnection, ?Cancellation, Cancellation): mixed $call */
    private function outcome(\Closure $call, ?Cancellation $cancellation, bool $mayWait): mixed
    {
        $options = new PostgresOptions(
            "{$this->server->host}:{$this->server->port}",
            'test',
            database: 'test',
            tls: TlsMode::Disable,
        );
        $connection = null;
        $deferred = new DeferredCancellation();
        $future = Async::run(static function () use ($options, $call, $cancellation, $deferred, &$connection): mixed {
            try {
                $connection = PostgresConnection::connect($options, $deferred->getCancellation());

                return $call($connection, $cancellation, $deferred->getCancellation());
            } catch (\Throwable $thrown) {
                return $thrown;
            }
        });
        $before = \count(EventLoop::getIdentifiers());
        for ($turn = 0; !$future->isComplete() && ($turn < self::TURNS || !$mayWait && $turn < 20_000); ++$turn) {
            delay(0);
        }
        if (!$future->isComplete()) {
            self::assertTrue($mayWait, 'the server has answered all');
            // No more bytes follow, so one side closes the connection.
            if (mt_rand(0, 1) === 0 || $connection === null) {
                $this->fuzz->hangUp();
            } else {
                $connection->kill();
            }
            // A listener would reconnect again and again.
            EventLoop::defer(static fn() => $deferred->cancel());
            $this->awaitTurns($future);
        }
        $deferred->cancel();
        $outcome = $future->await();
        $connection?->kill();
        $connection = null;
        for ($turn = 0; $this->server->running() > 0 && $turn < self::TURNS_TO_END; ++$turn) {
            delay(0);
        }
        self::assertLessThan($before + 20, \count(EventLoop::getIdentifiers()));

        return $outcome;
    }

    /** @param Future<mixed> $future */
    private function awaitTurns(Future $future): void
    {
        for ($turn = 0; !$future->isComplete() && $turn < self::TURNS_TO_END; ++$turn) {
            delay(0);
        }
        // A transaction that is retried pauses first.
        for ($pause = 0; !$future->isComplete() && $pause < 500; ++$pause) {
            delay(0.01);
        }
        self::assertTrue($future->isComplete(), 'It hangs');
    }

    /** @return list<array{string, \Closure(PostgresConnection, ?Cancellation, Cancellation): mixed}> */
    private static function calls(): array
    {
        return [
            [
                'query',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => self::taken($connection->query('rows', [], $cancellation)),
            ],
            [
                'again',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed => [
                    self::taken($connection->query('rows')),
                    self::taken($connection->query('rows', [], $cancellation)),
                    self::taken($connection->query('rows')),
                ],
            ],
            [
                'parameters',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed => [
                    self::taken($connection->query('rows $1', ['x'], $cancellation)),
                    self::taken($connection->query('rows $1', ['y'])),
                ],
            ],
            [
                'execute',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => [$connection->execute('update', [], $cancellation), $connection->execute('update')],
            ],
            [
                'error',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => $connection->query('error', [], $cancellation),
            ],
            ['pipeline', static function (PostgresConnection $connection, ?Cancellation $cancellation): mixed {
                $outcomes = Outcome::ofAll(array_map(
                    static fn(string $sql): \Closure
                        => static fn(): mixed
                            => self::taken($connection->query($sql, [], $sql === 'rows 2' ? $cancellation : null)),
                    ['rows 1', 'rows 2', 'error', 'rows 1', 'update'],
                ));
                foreach ($outcomes as $outcome) {
                    if (
                        $outcome instanceof \Throwable
                        && $outcome->getMessage() !== 'division by zero (SQLSTATE 22012)'
                    ) {
                        throw $outcome;
                    }
                }

                return $outcomes;
            }],
            [
                'stream',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => \count(iterator_to_array($connection->stream('rows streamed', [], $cancellation), false)),
            ],
            ['left stream', static function (PostgresConnection $connection, ?Cancellation $cancellation): mixed {
                foreach ($connection->stream('rows streamed', [], $cancellation) as $_) {
                    break;
                }

                return self::taken($connection->query('rows'));
            }],
            [
                'copy out',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => iterator_to_array($connection->copyTo('COPY t TO STDOUT', $cancellation), false),
            ],
            [
                'copy in',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => $connection->copyFrom('COPY t FROM STDIN', ["1\n", str_repeat("2\n", 50), "3\n"], $cancellation),
            ],
            [
                'copy rows in',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => $connection->copyFrom('COPY t FROM STDIN', ["1\n", "2\n"], $cancellation),
            ],
            ['script', static function (PostgresConnection $connection, ?Cancellation $cancellation): string {
                $connection->executeScript('script', $cancellation);

                return 'done';
            }],
            [
                'transaction',
                static fn(PostgresConnection $connection, ?Cancellation $cancellation): mixed
                    => $connection->transaction(static fn(Transaction $transaction): array => [
                        self::taken($transaction->query('rows')),
                        $transaction->transaction(static fn(Transaction $inner): int => $inner->execute('update')),
                    ], Isolation::Serializable, 1, $cancellation),
            ],
            [
                'listen',
                static function (PostgresConnection $connection, ?Cancellation $cancellation, Cancellation $end): int {
                    $heard = 0;
                    foreach ($connection->listen('channel', $end) as $_) {
                        if (++$heard === 3) {
                            break;
                        }
                    }

                    return $heard;
                },
            ],
        ];
    }

    /** Reads a result in all possible ways. */
    private static function taken(Result $result): int
    {
        $columns = $result->columnNames();
        $rows = 0;
        foreach ($result as $row) {
            if (\count($row) !== \count($columns)) {
                throw new \LengthException('A row has not as many values as there are columns');
            }
            ++$rows;
        }
        if ($rows !== \count($result) || \count($result->all()) !== $rows || \count($result->allNumeric()) !== $rows) {
            throw new \LengthException('There are more or fewer rows than there are');
        }
        Outcome::of(static fn(): mixed => $result->one());
        Outcome::of(static fn(): mixed => $result->value());

        return $rows;
    }
}
