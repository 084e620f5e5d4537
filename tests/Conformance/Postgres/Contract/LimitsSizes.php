<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\ResultTooLargeException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\Observer;

/**
 * Tests that a value or a result that exceeds the memory limit is an exception.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait LimitsSizes
{
    /** @return iterable<string, array{string}> */
    public static function largeValues(): iterable
    {
        yield 'a text' => ["SELECT repeat('x', 4000000)"];
        yield 'a text among others' => [
            "SELECT i, CASE i WHEN 500 THEN repeat('x', 4000000) ELSE 'y' END FROM generate_series(1, 1000) AS i",
        ];
        yield 'a bytea' => ["SELECT decode(repeat('ab', 4000000), 'hex')"];
        yield 'JSON' => ["SELECT to_jsonb(repeat('x', 4000000))"];
        yield 'values that are large together' => [
            "SELECT repeat('x', 1000000), repeat('y', 1000000), repeat('z', 1000000), 1",
        ];
    }

    #[DataProvider('largeValues')]
    public function testALargeValueIsAnExceptionAndTheConnectionIsOfUse(string $sql): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        foreach ([1, 2] as $_) {
            $growth = self::growth(static function () use ($connection, $sql): void {
                $thrown = self::thrown(
                    ResultTooLargeException::class,
                    static fn(): array => $connection->query($sql)->allNumeric(),
                );
                self::assertSame(2_000_000, $thrown->limit);
                self::assertStringContainsString('maxRowBytes', $thrown->getMessage());
            });
            self::assertLessThan(4 << 20, $growth);
            self::assertUsable($connection);
        }
        self::assertSame(1_999_000, \strlen(self::text($connection, "SELECT repeat('x', 1999000)")));
    }

    public function testAStreamEndsAtALargeValueBehindTheRowsBefore(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $taken = [];
        self::thrown(ResultTooLargeException::class, static function () use ($connection, &$taken): void {
            foreach ($connection->stream(
                "SELECT i, CASE i WHEN 5 THEN repeat('x', 4000000) ELSE 'y' END FROM generate_series(1, 100) AS i",
            ) as $row) {
                $taken[] = $row['i'];
            }
        });
        self::assertSame([1, 2, 3, 4], $taken);
        self::assertUsable($connection);
    }

    public function testWhatAStatementWithALargeResultDidIsDone(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $table = self::table('a text');
        self::thrown(
            ResultTooLargeException::class,
            static fn(): mixed
                => $connection->query("INSERT INTO {$table} VALUES (repeat('x', 4000000)) RETURNING a")->value(),
        );

        self::assertSame(1, $connection->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAStatementIsDoneWhenItsLargeRowIsReported(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $table = self::table('a int');
        $failure = $this->failureAfterALargeRow($connection, $table, 'NULL');
        $connection->close();

        self::assertInstanceOf(ResultTooLargeException::class, $failure);
        self::assertSame('(1) (2) (3)', self::committed($table));
    }

    public function testAnErrorAfterALargeRowIsReported(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $table = self::table('a int');
        $failure = $this->failureAfterALargeRow($connection, $table, '1 / 0');

        self::assertSame('22012', $failure instanceof QueryException ? $failure->sqlState : $failure::class);
        self::assertUsable($connection);
        self::assertSame('', self::committed($table));
    }

    public function testOtherStatementsAreNotConcernedByALargeValue(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $connection->transaction(static function (Transaction $transaction): void {
            self::thrown(
                ResultTooLargeException::class,
                static fn(): mixed => $transaction->query("SELECT repeat('x', 4000000)")->value(),
            );
            self::assertUsable($transaction);
        });
    }

    public function testALargeNoticeIsIgnoredAsOthersAre(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $connection->transaction(static function (Transaction $transaction): void {
            $transaction->query("DO $$ BEGIN RAISE NOTICE '%', repeat('x', 4000000); RAISE NOTICE 'y'; END $$");
            self::assertUsable($transaction);
        });
    }

    public function testAnErrorThatQuotesALargeValueIsShort(): void
    {
        $connection = $this->connect();
        $value = str_repeat('secret', 1_000_000);
        foreach ([
            ['SELECT $1::int', [$value]],
            ["SELECT repeat('secret', 1000000)::int", []],
            ['SELECT $1::json', ["{\"a\": \"{$value}\""]],
        ] as [$sql, $parameters]) {
            $growth = self::growth(static function () use ($connection, $sql, $parameters): void {
                $message = self::thrown(
                    QueryException::class,
                    static fn(): mixed => $connection->query($sql, $parameters),
                )->getMessage();
                self::assertStringNotContainsString('secret', $message);
                self::assertLessThan(200, \strlen($message));
            });
            self::assertLessThan(26 << 20, $growth);
        }
        self::assertUsable($connection);
    }

    public function testAnErrorOfAStatementWithManyValuesTakesLittleMemory(): void
    {
        $connection = $this->connect();
        $table = self::table('id int PRIMARY KEY');
        $connection->execute("INSERT INTO {$table} VALUES (77777)");
        $ids = range(1, 100_000);
        $growth = self::growth(static function () use ($connection, $table, $ids): void {
            self::thrown(
                UniqueViolationException::class,
                static fn(): mixed
                    => $connection->query("INSERT INTO {$table} SELECT * FROM unnest($1::int[])", [$ids]),
            );
        });
        self::assertLessThan(20 << 20, $growth);
    }

    public function testAStreamWhoseRowsBecomeWideIsBoundedByBytes(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $bytes = 0;
        $growth = self::growth(static function () use ($connection, &$bytes): void {
            foreach ($connection->stream(
                "SELECT CASE WHEN i > 16000 THEN repeat('x', 300000) ELSE '' END AS x FROM generate_series(1, "
                    . '16200) AS i',
            ) as $row) {
                $bytes += \is_string($row['x']) ? \strlen($row['x']) : 0;
            }
        });

        self::assertSame(200 * 300_000, $bytes);
        self::assertLessThan(8 << 20, $growth);
    }

    public function testTheFirstRowsOfAStreamAreBoundedByBytes(): void
    {
        $connection = $this->connect(maxRowBytes: 2_000_000);
        $growth = self::growth(static function () use ($connection): void {
            foreach ($connection->stream("SELECT repeat('x', 1000000) AS x FROM generate_series(1, 50)") as $row) {
                unset($row);
            }
        });

        self::assertLessThan(8 << 20, $growth);
    }

    public function testStatementsBetweenTheWideRowsOfAStreamAreAnswered(): void
    {
        $connection = $this->connect();
        $count = $connection->transaction(static function (Transaction $transaction): int {
            $count = 0;
            foreach ($transaction->stream(
                "SELECT i, repeat('x', 200000) AS x FROM generate_series(1, 100) AS i",
            ) as $row) {
                self::assertSame(++$count, $transaction->query('SELECT $1::int', [$row['i']])->value());
                if ($count === 60) {
                    $transaction->execute('DO $$ BEGIN END $$'); // waits for all statements ahead
                }
            }

            return $count;
        });

        self::assertSame(100, $count);
        self::assertUsable($connection);
    }

    public function testTwoWideStreamsOfATransactionAreReadSideBySide(): void
    {
        $connection = $this->connect();
        $connection->transaction(static function (Transaction $transaction): void {
            $sql = "SELECT i, repeat('x', 100000) AS x FROM generate_series(1, 120) AS i";
            $other = $transaction->stream($sql);
            foreach ($transaction->stream($sql) as $row) {
                self::assertSame($row['i'], $other->current()['i'] ?? null);
                $other->next();
            }
        });
        self::assertUsable($connection);
    }

    public function testAWideStreamThatIsLeftOrKeptBlocksNoOther(): void
    {
        $connection = $this->connect();
        $sql = "SELECT repeat('x', 500000) AS x FROM generate_series(1, 1000) AS i";
        foreach ($connection->stream($sql) as $_) {
            break;
        }
        self::assertUsable($connection);
        $kept = $connection->transaction(static function (Transaction $transaction) use ($sql): \Generator {
            $rows = $transaction->stream($sql);
            $rows->current();

            return $rows;
        });
        self::assertUsable($connection);
        unset($kept);
        self::assertUsable($connection);
    }

    /**
     * Inserts three rows and returns large rows. After the first one, waits at a gate until the client has read it.
     *
     * @param string $last what the statement computes last
     */
    private function failureAfterALargeRow(PostgresConnection $connection, string $table, string $last): \Throwable
    {
        $gate = new Gate();
        Observer::ask(
            "CREATE FUNCTION {$table}_f(i int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
                . "INSERT INTO {$table} VALUES (i); IF i = 2 THEN PERFORM {$gate->call()}; END IF; "
                . "IF i = 3 THEN PERFORM {$last}; END IF; RETURN repeat('x', 4000000); END $$",
        );
        $opening = Async::run(static function () use ($gate): void {
            $gate->awaitStatements(1);
            self::meanwhile();
            $gate->open();
        });
        $failure = self::thrown(
            \Throwable::class,
            static fn(): mixed => $connection->query("SELECT {$table}_f(i) FROM generate_series(1, 3) AS i"),
        );
        self::assertTrue($opening->isComplete(), 'the statement ended before its exception');

        return $failure;
    }

    private static function text(PostgresConnection $connection, string $sql): string
    {
        $text = $connection->query($sql)->value();

        return \is_string($text) ? $text : '';
    }
}
