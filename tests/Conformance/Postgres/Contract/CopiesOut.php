<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Conformance\Postgres\LinkContract;

use function Amp\delay;

/**
 * Tests COPY … TO STDOUT.
 *
 * @phpstan-require-extends LinkContract
 */
trait CopiesOut
{
    public function testRowsAreCopiedOutAsTheyAreWritten(): void
    {
        $link = $this->link();
        $table = self::table('id int, name text');
        self::assertSame([], iterator_to_array($link->copyTo("COPY {$table} TO STDOUT")));
        $link->execute("INSERT INTO {$table} VALUES (1, 'a'), (2, NULL), (3, E'\\t\\n\\\\')");

        self::assertSame(
            ["1\ta\n", "2\t\\N\n", "3\t\\t\\n\\\\\n"],
            iterator_to_array($link->copyTo("COPY {$table} TO STDOUT")),
        );
        self::assertSame(
            ["id;name\n", "1;a\n", "2;\n"],
            iterator_to_array($link->copyTo(
                "COPY (SELECT * FROM {$table} WHERE id < 3) TO STDOUT (FORMAT csv, HEADER, DELIMITER ';')",
            )),
        );
        self::assertUsable($link);
    }

    public function testManyRowsAreCopiedOut(): void
    {
        $link = $this->link();
        $next = 1;
        foreach ($link->copyTo(
            "COPY (SELECT i, repeat('x', 100) FROM generate_series(1, 30000) AS i) TO STDOUT",
        ) as $index => $row) {
            if ($row !== $next . "\t" . str_repeat('x', 100) . "\n" || $index !== $next - 1) {
                self::fail("Row {$index} is {$row}");
            }
            if (++$next % 10_000 === 0) {
                delay(0.001); // rows that arrive now have to wait
            }
        }
        self::assertSame(30_001, $next);
        self::assertUsable($link);
    }

    public function testACopyThatIsLeftEndsAtOnce(): void
    {
        $link = $this->link();
        foreach ([1, 5_000] as $most) {
            $taken = 0;
            foreach ($link->copyTo('COPY (SELECT generate_series(1, 1000000000)) TO STDOUT') as $row) {
                if (++$taken === $most) {
                    break;
                }
            }
            self::assertSame("{$most}\n", $row ?? null);
            if ($link instanceof Transaction) {
                return; // the transaction has failed with the statement
            }
            self::assertUsable($link);
        }
    }

    public function testWhatIsCopiedOutIsNotHeldAsAWhole(): void
    {
        $link = $this->link();
        $count = 0;
        $growth = self::growth(function () use ($link, &$count): void {
            foreach ($link->copyTo(
                "COPY (SELECT i, repeat('x', 200) AS x FROM generate_series(1, 50000) AS i) TO STDOUT",
            ) as $_) {
                if (++$count === 1) {
                    $this->connect()->query('SELECT pg_sleep(0.1)'); // time for rows to arrive that are not read
                }
            }
        });

        self::assertSame(50_000, $count);
        self::assertLessThan(5 << 20, $growth);
    }

    public function testAStatementWithinTheLoopFailsBecauseItWaitsForItself(): void
    {
        $this->link()->transaction(static function (Transaction $transaction): void {
            foreach ($transaction->copyTo('COPY (SELECT generate_series(1, 3)) TO STDOUT') as $_) {
                self::assertStringContainsString(
                    'would wait for itself',
                    self::thrown(\LogicException::class, static fn() => $transaction->query('SELECT 1'))->getMessage(),
                );
            }
            self::assertUsable($transaction);
        });
    }

    public function testACopyThatOutlivesItsTransactionIsReported(): void
    {
        $link = $this->link();
        try {
            $rows = $link->transaction(static function (Transaction $transaction): \Generator {
                $rows = $transaction->copyTo('COPY (SELECT generate_series(1, 1000000)) TO STDOUT');
                self::assertSame("1\n", $rows->current());

                return $rows;
            });
            foreach ($rows as $_) {
                continue;
            }
            self::fail('It is read to its end');
        } catch (PostgresException|\LogicException) {
            unset($rows);
        }
        self::assertUsable($link);
    }

    public function testACopyOutMayBeTheInputOfAnother(): void
    {
        [$link, $other] = [$this->link(), $this->link()];
        $table = self::table('i int, x text');
        $rows = $link->copyTo("COPY (SELECT i, repeat('x', i) FROM generate_series(1, 500) AS i) TO STDOUT");

        self::assertSame(500, $other->copyFrom("COPY {$table} FROM STDIN", $rows));
        self::assertSame(
            [[125_250, 125_250]],
            $other->query("SELECT sum(i)::int, sum(length(x))::int FROM {$table}")->allNumeric(),
        );
    }

    public function testACopyThatIsNotBegunDoesNothing(): void
    {
        $link = $this->link();
        $rows = $link->copyTo('COPY (SELECT 1) TO STDOUT');
        self::assertUsable($link);
        unset($rows);
        self::assertUsable($link);
    }

    public function testWhatTheServerRefusesIsThrownWithTheFirstRow(): void
    {
        $link = $this->link();
        foreach ([
            '42601' => 'COPY TO STDOUT',
            '42P01' => 'COPY nowhere TO STDOUT',
            '22012' => 'COPY (SELECT 1 / i FROM generate_series(0, 5) AS i) TO STDOUT',
        ] as $sqlState => $sql) {
            $thrown = self::refused(
                QueryException::class,
                $link,
                static fn(PostgresLink $link): mixed => $link->copyTo($sql)->current(),
            );
            self::assertSame((string) $sqlState, $thrown->sqlState);
        }
    }

    public function testAnErrorInTheMiddleOfACopyComesBehindTheRowsBefore(): void
    {
        $link = $this->link();
        $taken = [];
        $thrown = self::refused(QueryException::class, $link, static function (PostgresLink $link) use (&$taken): void {
            foreach ($link->copyTo(
                'COPY (SELECT i, 1 / (500 - i) FROM generate_series(1, 1000) AS i) TO STDOUT',
            ) as $row) {
                $taken[] = (int) $row;
            }
        });

        self::assertSame('22012', $thrown->sqlState);
        self::assertLessThan(500, \count($taken));
        self::assertSame($taken === [] ? [] : range(1, \count($taken)), $taken);
    }

    public function testACopyThatIsQueriedIsRefused(): void
    {
        $link = $this->link();
        foreach (['COPY (SELECT 1) TO STDOUT', 'COPY nowhere FROM STDIN'] as $sql) {
            self::refused(\LogicException::class, $link, static fn(PostgresLink $link) => $link->query($sql));
        }
    }

    public function testOnlyACopyToStdoutIsTaken(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        foreach (['SELECT 1', "INSERT INTO {$table} VALUES (1)", "COPY {$table} FROM STDIN", ''] as $sql) {
            self::refused(
                \LogicException::class,
                $link,
                static fn(PostgresLink $link): mixed => $link->copyTo($sql)->current(),
            );
        }
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAnExceptionOfTheLoopOverACopyIsTheOneThatIsThrown(): void
    {
        $link = $this->link();
        $mine = new \DomainException('mine');
        $thrown = self::refused(\DomainException::class, $link, static function (PostgresLink $link) use ($mine): void {
            foreach ($link->copyTo('COPY (SELECT generate_series(1, 100000)) TO STDOUT') as $row) {
                throw $mine;
            }
        });

        self::assertSame($mine, $thrown);
    }

    public function testACopyOutIsCancelled(): void
    {
        $link = $this->link();
        foreach ([0, 1, 5_000] as $after) {
            $cancellation = new DeferredCancellation();
            $taken = 0;
            if ($after === 0) {
                $cancellation->cancel();
            }
            self::refused(
                CancelledException::class,
                $link,
                static function (PostgresLink $link) use ($cancellation, $after, &$taken): void {
                    foreach ($link->copyTo(
                        'COPY (SELECT generate_series(1, 100000000)) TO STDOUT',
                        $cancellation->getCancellation(),
                    ) as $_) {
                        if (++$taken === $after) {
                            $cancellation->cancel();
                        }
                    }
                },
            );
            self::assertLessThan($after + 1_000_000, $taken);
        }
    }
}
