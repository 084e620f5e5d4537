<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\UnexpectedResultException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests rows that are fetched while they are taken.
 *
 * @phpstan-require-extends LinkContract
 */
trait StreamsRows
{
    public function testAStreamHasAllRowsInOrder(): void
    {
        $link = $this->link();
        $rows = $link->stream("SELECT i, repeat('x', i % 50) AS x FROM generate_series(1, \$1) AS i", [5_000]);
        $next = 0;
        foreach ($rows as $index => $row) {
            if ($row !== ['i' => $index + 1, 'x' => str_repeat('x', ($index + 1) % 50)] || $index !== $next++) {
                self::fail("Row {$index} is " . json_encode($row));
            }
        }
        self::assertSame(5_000, $next);
        self::assertUsable($link);
    }

    public function testAStreamOfAnyNumberOfRowsEnds(): void
    {
        $link = $this->link();
        foreach ([0, 1, 49, 50, 51, 100] as $count) {
            foreach ([1, 2] as $_) {
                $rows = iterator_to_array($link->stream('SELECT i FROM generate_series(1, $1::int) AS i', [$count]));
                self::assertSame($count === 0 ? [] : range(1, $count), array_column($rows, 'i'));
                self::assertSame(array_keys(array_values($rows)), array_keys($rows));
            }
        }
        self::assertUsable($link);
    }

    public function testAnyStatementMayBeStreamed(): void
    {
        $link = $this->link();
        $table = self::table('id int, "INSERT" text');
        $link->execute("INSERT INTO {$table} VALUES (1, 'a'), (2, 'b')");
        $rows = [['id' => 1, 'INSERT' => 'a'], ['id' => 2, 'INSERT' => 'b']];
        foreach ([
            'SELECT 1 AS a;' => [['a' => 1]],
            " \n-- INSERT\n/* DELETE */ ((SELECT 1 AS a)) -- INTO" => [['a' => 1]],
            "select 'INSERT INTO' as a, \"INSERT\" from {$table} where id = 1" => [[
                'a' => 'INSERT INTO',
                'INSERT' => 'a',
            ]],
            "TABLE {$table}" => $rows,
            "SELECT * FROM {$table} ORDER BY id FOR UPDATE" => $rows,
            'VALUES (1, true), (2, NULL);' => [
                ['column1' => 1, 'column2' => true],
                ['column1' => 2, 'column2' => null],
            ],
            "WITH x AS (SELECT * FROM {$table}) SELECT count(*) FROM x" => [['count' => 2]],
            "WITH x AS (INSERT INTO {$table} VALUES (3) RETURNING id) SELECT * FROM x" => [['id' => 3]],
            "INSERT INTO {$table} VALUES (4) RETURNING *" => [['id' => 4, 'INSERT' => null]],
            "UPDATE {$table} SET id = id + 1 WHERE id > 2" => [],
            "DELETE FROM {$table} WHERE id > 4 RETURNING id" => [['id' => 5]],
            'SHOW TimeZone' => [['TimeZone' => 'UTC']],
            'EXPLAIN (COSTS OFF) SELECT 1' => [['QUERY PLAN' => 'Result']],
            'SELECT' => [[]],
            'SELECT $$;$$ AS a' => [['a' => ';']],
            '' => [],
            '-- nothing' => [],
        ] as $sql => $expected) {
            self::assertSame($expected, iterator_to_array($link->stream($sql)), $sql);
        }
        self::assertSame([1, 2, 4], $link->query("SELECT id FROM {$table} ORDER BY id")->column());
    }

    public function testValuesOfAStreamHaveTheirTypes(): void
    {
        $row = ['a' => 1.5, 'b' => "\0\xFF", 'c' => [true, null], 'd' => ['x' => 1], 'e' => null];
        $sql = 'SELECT $1::float8 AS a, $2::bytea AS b, $3::bool[] AS c, $4::jsonb AS d, NULL AS e';

        self::assertSame(
            [$row],
            iterator_to_array($this->link()->stream($sql, [1.5, "\0\xFF", [true, null], ['x' => 1]])),
        );
    }

    public function testAStreamThatIsLeftEndsAtOnce(): void
    {
        $link = $this->link();
        $taken = [];
        foreach ($link->stream('SELECT generate_series(1, 1000000000) AS i') as $row) {
            $taken[] = $row['i'];
            if (\count($taken) === 60) {
                break;
            }
        }
        unset($row);

        self::assertSame(range(1, 60), $taken);
        self::assertUsable($link);
        self::assertUsable($link);
    }

    public function testAStreamThatIsNotBegunDoesNothing(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $rows = $link->stream("INSERT INTO {$table} VALUES (1) RETURNING i");
        self::assertUsable($link);
        unset($rows);

        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testWhatAStreamWritesIsDone(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $rows = iterator_to_array($link->stream("INSERT INTO {$table} SELECT generate_series(1, 200) RETURNING i"));
        $none = iterator_to_array($link->stream("INSERT INTO {$table} VALUES (0)"));

        self::assertSame([range(1, 200), []], [array_column($rows, 'i'), $none]);
        self::assertSame(201, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAnErrorInTheMiddleOfAStreamComesBehindTheRowsBefore(): void
    {
        $link = $this->link();
        $taken = [];
        $thrown = self::refused(QueryException::class, $link, static function (PostgresLink $link) use (&$taken): void {
            foreach ($link->stream('SELECT i, 1 / (500 - i) AS x FROM generate_series(1, 1000) AS i') as $row) {
                $taken[] = $row['i'];
            }
        });

        self::assertSame('22012', $thrown->sqlState);
        self::assertGreaterThan(0, \count($taken));
        self::assertLessThan(500, \count($taken));
        self::assertSame(range(1, \count($taken)), $taken);
    }

    public function testAStreamThatTheServerRefusesThrowsWithItsFirstRow(): void
    {
        $link = $this->link();
        foreach ([
            '42601' => 'SELECT FROM WHERE',
            '42P01' => 'SELECT * FROM nowhere',
            '22012' => 'SELECT 1 / $1::int',
        ] as $sqlState => $sql) {
            $parameters = str_contains($sql, '$1') ? [0] : [];
            $thrown = self::refused(
                QueryException::class,
                $link,
                static fn(PostgresLink $link): mixed => $link->stream($sql, $parameters)->current(),
            );
            self::assertSame((string) $sqlState, $thrown->sqlState);
        }
        self::refused(
            InvalidParameterException::class,
            $link,
            static fn(PostgresLink $link): mixed => $link->stream('SELECT $1::int', [[]])->current(),
        );
        self::refused(
            UnexpectedResultException::class,
            $link,
            static fn(PostgresLink $link): mixed => $link->stream('SELECT 1 AS a, 2 AS a')->current(),
        );
    }

    public function testAnExceptionOfTheLoopIsTheOneThatIsThrown(): void
    {
        $link = $this->link();
        $mine = new \DomainException('mine');
        $thrown = self::refused(\DomainException::class, $link, static function (PostgresLink $link) use ($mine): void {
            foreach ($link->stream('SELECT generate_series(1, 100000)') as $row) {
                throw $mine;
            }
        });

        self::assertSame($mine, $thrown);
    }

    public function testStreamsWithinATransactionAreReadSideBySide(): void
    {
        $sums = $this->link()->transaction(static function (Transaction $transaction): array {
            $evens = $transaction->stream('SELECT 2 * i AS i FROM generate_series(1, 300) AS i');
            $sums = [0, 0, 0];
            foreach ($transaction->stream('SELECT i FROM generate_series(1, 300) AS i') as $odd) {
                $even = $evens->current();
                $evens->next();
                $sums[0] += self::integer($odd['i']);
                $sums[1] += self::integer($even['i']);
                $sums[2] += self::integer($transaction->query('SELECT $1::int + $2', [$odd['i'], $even['i']])->value());
            }

            return $sums;
        });

        self::assertSame([45_150, 90_300, 135_450], $sums);
    }

    public function testStreamsLeaveNoCursorsOpen(): void
    {
        $this->link()->transaction(static function (Transaction $transaction): void {
            for ($i = 0; $i < 20; ++$i) {
                foreach ($transaction->stream('SELECT generate_series(1, 1000)') as $index => $_) {
                    if ($index === 20 * $i) {
                        break;
                    }
                }
                self::assertCount(60, iterator_to_array($transaction->stream('SELECT generate_series(1, 60)')));
            }
            self::assertUsable($transaction);

            self::assertSame([], $transaction->query("SELECT name FROM pg_cursors WHERE name <> ''")->column());
        });
    }

    public function testAStreamWithinATransactionSeesItAndIsPartOfIt(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        self::refused(\DomainException::class, $link, static function (PostgresLink $link) use ($table): void {
            $link->transaction(static function (Transaction $transaction) use ($table): void {
                $transaction->execute("INSERT INTO {$table} SELECT generate_series(1, 100)");
                foreach ($transaction->stream(
                    "INSERT INTO {$table} SELECT i + 100 FROM {$table} RETURNING i",
                ) as $row) {
                    self::assertGreaterThan(100, $row['i']);
                }
                self::assertCount(200, iterator_to_array($transaction->stream("SELECT * FROM {$table}")));
                throw new \DomainException();
            });
        });

        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAStreamThatOutlivesItsTransactionIsReported(): void
    {
        $link = $this->link();
        $rows = $link->transaction(static function (Transaction $transaction): \Generator {
            $rows = $transaction->stream('SELECT generate_series(1, 100000) AS i');
            self::assertSame(['i' => 1], $rows->current());

            return $rows;
        });
        self::assertUsable($link);
        $taken = 0;
        try {
            for (; $rows->valid(); $rows->next()) {
                ++$taken;
            }
            self::assertInstanceOf(Transaction::class, $link, 'of which the inner one is a part, and its stream');
            self::assertSame(100_000, $taken);
        } catch (PostgresException|\LogicException) {
            self::assertLessThan(20_000, $taken);
        }
        if (!$link instanceof Transaction) {
            self::assertUsable($link);
        }
    }

    public function testAStreamMayBeBegunInOneFiberAndReadInAnother(): void
    {
        $link = $this->link();
        $rows = $link->stream('SELECT i FROM generate_series(1, 200) AS i');
        $first = Async::run(static fn(): mixed => $rows->current())->await();
        $rows->next();
        $others = Async::run(static function () use ($rows): array {
            $others = [];
            for (; $rows->valid(); $rows->next()) {
                $others[] = $rows->current()['i'];
            }

            return $others;
        })->await();

        self::assertSame([['i' => 1], range(2, 200)], [$first, $others]);
        self::assertUsable($link);
    }

    public function testAStreamIsCancelled(): void
    {
        $link = $this->link();
        foreach ([0, 1, 50, 500] as $after) {
            $cancellation = new DeferredCancellation();
            $taken = 0;
            if ($after === 0) {
                $cancellation->cancel(new \DomainException('enough'));
            }
            $thrown = self::refused(
                CancelledException::class,
                $link,
                static function (PostgresLink $link) use ($cancellation, $after, &$taken): void {
                    foreach ($link->stream(
                        'SELECT generate_series(1, 10000000)',
                        [],
                        $cancellation->getCancellation(),
                    ) as $_) {
                        if (++$taken === $after) {
                            $cancellation->cancel(new \DomainException('enough'));
                        }
                    }
                },
            );
            self::assertSame('enough', $thrown->getPrevious()?->getMessage());
            self::assertLessThan($after + 20_000, $taken);
        }
    }
}
