<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\TimeoutCancellation;
use Psr\Log\LogLevel;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Journal;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;

/**
 * Tests the records that a logger receives.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait LogsSteps
{
    public function testEachStepIsLogged(): void
    {
        $journal = new Journal();
        $connection = $this->connect(logger: $journal);
        $pid = $connection->backendPid();
        self::assertNotSame([], $journal->records, 'connecting');
        $table = self::table('i int PRIMARY KEY');
        foreach ([
            'a statement' => static fn() => $connection->query('SELECT 1'),
            'a statement that is known' => static fn() => $connection->query('SELECT 1'),
            'a statement with values' => static fn() => $connection->query('SELECT $1::text', ['x']),
            'an error' => static fn()
                => self::thrown(PostgresException::class, static fn() => $connection->query('SELECT 1 / 0')),
            'a stream' => static fn() => iterator_to_array($connection->stream('SELECT 1')),
            'a COPY in' => static fn() => $connection->copyFrom("COPY {$table} FROM STDIN", [[1]]),
            'a COPY out' => static fn() => iterator_to_array($connection->copyTo("COPY {$table} TO STDOUT")),
            'a script' => static fn() => $connection->executeScript('SELECT 1; SELECT 2'),
            'a transaction' => static fn()
                => $connection->transaction(static fn(Transaction $transaction) => $transaction->query('SELECT 1')),
            'a cancellation' => static fn() => self::thrown(
                CancelledException::class,
                static fn() => $connection->query('SELECT pg_sleep(1000)', [], new TimeoutCancellation(0.01)),
            ),
            'the end' => $connection->close(...),
        ] as $step => $work) {
            $before = \count($journal->records);
            $work();
            Eventually::holds(static fn(): bool => \count($journal->records) > $before, "{$step} is told");
        }
        foreach ($journal->records as $record) {
            self::assertSame(LogLevel::DEBUG, $record['level'], $record['message']);
            self::assertSame($pid, $record['context']['pid'] ?? null, $record['message']);
            self::assertIsInt($record['context']['connection'] ?? null, $record['message']);
        }
    }

    public function testTheDurationOfAStatementIsLogged(): void
    {
        $journal = new Journal();
        $connection = $this->connect(logger: $journal);
        $table = self::table('i int');
        foreach ([
            'SELECT pg_sleep(0.02)' => static fn(string $sql): mixed
                => [$connection->query($sql), $connection->query($sql)],
            'SELECT 1 / (0 * length(pg_sleep(0.02)::text))' => static fn(string $sql): mixed
                => self::thrown(PostgresException::class, static fn() => $connection->query($sql)),
            'SELECT pg_sleep(0.02); SELECT 1' => static function (string $sql) use ($connection): void {
                $connection->executeScript($sql);
            },
            "COPY {$table} FROM STDIN" => static fn(string $sql): mixed => $connection->copyFrom($sql, ["1\n"]),
        ] as $sql => $work) {
            $before = \count($journal->records);
            $work($sql);
            $durations = array_column(
                array_filter(
                    array_column(\array_slice($journal->records, $before), 'context'),
                    static fn(array $context): bool => ($context['sql'] ?? '') === $sql,
                ),
                'duration',
            );
            self::assertNotSame([], $durations, $sql);
            foreach ($durations as $seconds) {
                self::assertIsFloat($seconds);
                self::assertGreaterThan(str_contains($sql, 'sleep') ? 0.019 : 0.0, $seconds, $sql);
                self::assertLessThan(20.0, $seconds, $sql);
            }
        }
    }

    public function testErrorsHaveAClassByTheirSqlState(): void
    {
        $journal = new Journal();
        $connection = $this->connect(logger: $journal);
        foreach ([1, 2] as $_) {
            $journal->records = [];
            self::thrown(PostgresException::class, static fn() => $connection->query('SELECT 1 / 0'));
            self::assertStringContainsString('22012', $journal->text());
        }
    }

    public function testTheLossOfAConnectionIsReported(): void
    {
        $journal = new Journal();
        $connection = $this->connect(logger: $journal);
        $journal->records = [];
        self::terminate($connection->backendPid());
        self::thrown(PostgresException::class, static fn() => $connection->query('SELECT 1'));

        self::assertStringContainsString('57P01', $journal->text());
    }

    public function testAFailureToConnectIsReported(): void
    {
        $journal = new Journal();
        self::thrown(PostgresException::class, fn() => $this->connect(logger: $journal, database: 'nowhere'));

        self::assertStringContainsString('3D000', $journal->text());
    }

    public function testNoValueAndNoPasswordIsLogged(): void
    {
        $journal = new Journal();
        $options = \Spindle\Postgres\PostgresOptions::fromDsn(Cluster::shared()->tcpDsn())->with(
            ['logger' => $journal, 'applicationName' => $this->options()->applicationName],
        );
        $connection = PostgresConnection::connect($options);
        $table = self::table('i text PRIMARY KEY');
        foreach ([1, 2] as $_) {
            foreach ([
                static fn() => $connection->query('SELECT $1::text', ['secret']),
                static fn() => $connection->query('SELECT $1::text::int', ['secret']),
                static fn() => $connection->query("INSERT INTO {$table} VALUES (\$1)", ['secret']),
                static fn() => iterator_to_array($connection->stream('SELECT $1::text', ['secret'])),
                static fn() => $connection->copyFrom("COPY {$table} FROM STDIN", [['secret']]),
                static fn() => $connection->copyFrom("COPY {$table} FROM STDIN", ["secret\n"]),
                static fn() => iterator_to_array($connection->copyTo("COPY {$table} TO STDOUT")),
                static fn() => $connection->query('SELECT $1::int', [['secret']]),
            ] as $verb) {
                try {
                    $verb();
                } catch (PostgresException) {
                    // failures are logged too
                }
            }
        }
        $connection->close();
        self::assertNotSame([], $journal->records);
        self::assertStringNotContainsString('secret', $journal->text());
        self::assertStringNotContainsString(Cluster::shared()->password, $journal->text());
    }
}
