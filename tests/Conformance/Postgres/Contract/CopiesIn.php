<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Conformance\Postgres\LinkContract;
use Spindle\Tests\Postgres\Digit;
use Spindle\Tests\Postgres\Letter;

use function Amp\delay;

/**
 * Tests COPY … FROM STDIN.
 *
 * @phpstan-require-extends LinkContract
 */
trait CopiesIn
{
    public function testRowsAreCopiedIn(): void
    {
        $link = $this->link();
        $table = self::table('id int, name text');
        $rows = [
            [1, 'a'],
            [2, null],
            ['x' => 3, 'y' => "\t\n\r\\\\N\\.'\""],
            [4, ''],
            [5, '\N'],
            [6, '\.'],
            [7, "ä\u{1F600}"],
        ];

        self::assertSame(7, $link->copyFrom("COPY {$table} (id, name) FROM STDIN", $rows));
        self::assertSame(
            array_map(array_values(...), $rows),
            $link->query("SELECT * FROM {$table} ORDER BY id")->allNumeric(),
        );
    }

    public function testAFileIsCopiedIn(): void
    {
        $link = $this->link();
        $table = self::table('id int, name text');
        $file = new \SplTempFileObject();
        $file->fwrite("1,a\n2,\"b\nc\"\n");
        $file->rewind();

        // @phpstan-ignore argument.type (without the flag READ_CSV, the object yields only strings)
        self::assertSame(2, $link->copyFrom("COPY {$table} FROM STDIN WITH (FORMAT csv)", $file));
        self::assertSame(
            [[1, 'a'], [2, "b\nc"]],
            $link->query("SELECT * FROM {$table} ORDER BY id")->allNumeric(),
        );
    }

    public function testCopiedValuesHaveTheirTypes(): void
    {
        $link = $this->link();
        $table = self::table('"A b" bytea, c timestamptz, d jsonb, e text[], f float8, g bool, h int, i numeric');
        $row = [
            "\0\\\xFF\n",
            new \DateTimeImmutable('2024-02-29 12:00:00.123456 UTC'),
            ['k' => "\t\\\""],
            ["a\n", null, '"', '\\'],
            -\INF,
            false,
            null,
            '1.50',
        ];
        $link->copyFrom("COPY {$table} FROM STDIN", [$row, ["\0", null, '[1]', [Letter::B], 1, true, Digit::Two, 2]]);
        $copied = $link->query("SELECT * FROM {$table}")->allNumeric();

        self::assertEquals($row, $copied[0]);
        self::assertSame(["\0", null, [1], ['b'], 1.0, true, 2, '2'], $copied[1]);
    }

    public function testColumnsAreNamedInTheirOrder(): void
    {
        $link = $this->link();
        $table = self::table('a text, "B, (c)" text, d int DEFAULT 9');
        $link->copyFrom("copy public.{$table} ( \"B, (c)\" , a ) from stdin ;", [['b', 'a']]);

        self::assertSame([['a', 'b', 9]], $link->query("SELECT * FROM {$table}")->allNumeric());
    }

    public function testTextIsCopiedHoweverItIsCut(): void
    {
        $link = $this->link();
        $table = self::table('id int, name text');
        $text = "1\ta\n2\t\\N\n3\tä\\\\\n";
        foreach ([1, 2, 5, 100] as $size) {
            self::assertSame(3, $link->copyFrom("COPY {$table} FROM STDIN", str_split($text, $size)));
            self::assertSame(
                [[1, 'a'], [2, null], [3, 'ä\\']],
                $link->query("DELETE FROM {$table} RETURNING *")->allNumeric(),
            );
        }
    }

    public function testCsvIsCopied(): void
    {
        $link = $this->link();
        $table = self::table('id int, name text');

        self::assertSame(
            2,
            $link->copyFrom(
                "COPY {$table} FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';')",
                ["id;name\n1;\"a;\n\"\"b\"\"\"\n", "2;\n"],
            ),
        );
        self::assertSame(
            [[1, "a;\n\"b\""], [2, null]],
            $link->query("SELECT * FROM {$table} ORDER BY id")->allNumeric(),
        );
    }

    public function testNothingMayBeCopied(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        foreach ([[], [''], new \EmptyIterator(), (static fn(): \Generator => yield from [])()] as $nothing) {
            self::assertSame(0, $link->copyFrom("COPY {$table} FROM STDIN", $nothing));
        }
        self::assertUsable($link);
    }

    public function testAGeneratorIsReadAsItIsCopied(): void
    {
        $link = $this->link();
        $table = self::table('id int, name text');
        $rows = static function (): \Generator {
            for ($i = 1; $i <= 3_000; ++$i) {
                if ($i % 1_000 === 0) {
                    delay(0);
                }
                yield 'the same key' => [$i, str_repeat('x', 200)];
            }
        };

        self::assertSame(3_000, $link->copyFrom("COPY {$table} FROM STDIN", $rows()));
        self::assertSame(
            [[3_000, 4_501_500, 600_000]],
            $link->query("SELECT count(*), sum(id)::int, sum(length(name))::int FROM {$table}")->allNumeric(),
        );
    }

    public function testNothingIsCopiedWhenTheInputThrows(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        $mine = new \DomainException('mine');
        foreach ([0, 1, 50_000] as $good) {
            foreach ([
                'rows' => static fn(int $i): array => [$i],
                'text' => static fn(int $i): string => "{$i}\n",
            ] as $item) {
                $rows = static function () use ($good, $mine, $item): \Generator {
                    for ($i = 0; $i < $good; ++$i) {
                        yield $item($i);
                    }
                    throw $mine;
                };
                self::assertSame(
                    $mine,
                    self::refused(
                        \DomainException::class,
                        $link,
                        static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", $rows()),
                    ),
                );
            }
        }
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testARowThatCanNotBeSentIsRefusedWithAllOthers(): void
    {
        $link = $this->link();
        $table = self::table('id int, name text');
        foreach (["secret\0" => 2, 'secret' => null] as $bad => $position) {
            $row = $position === null ? [1, $bad, 3] : [1, $bad];
            $thrown = self::refused(
                InvalidParameterException::class,
                $link,
                static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", [[1, 'a'], $row]),
            );
            self::assertSame($position, $thrown->position);
            self::assertStringContainsString(' of row 2 is ', $thrown->getMessage());
            self::assertStringNotContainsString('secret', $thrown->getMessage());
        }
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testTheMessageForTextInAnotherEncodingNamesTheEncodingAndTheLineAndShowsNoBytes(): void
    {
        $table = self::table('id int, name text');
        foreach ([["1\ta\n", "2\t\xE9secret\n"], [[1, 'a'], [2, "\xE9secret"]]] as $rows) {
            $thrown = self::refused(
                QueryException::class,
                $this->link(),
                static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", $rows),
            );
            self::assertSame('22021', $thrown->sqlState);
            self::assertStringContainsString(
                'invalid byte sequence for encoding "UTF8": … in line 2 (',
                $thrown->getMessage(),
            );
            self::assertStringNotContainsString('0x', $thrown->getMessage());
        }
    }

    public function testWhatTheServerRefusesEndsTheInput(): void
    {
        $link = $this->link();
        $table = self::table('id int PRIMARY KEY, name text');
        $rows = static function (\Closure $bad): \Generator {
            for ($i = 0; true; ++$i) {
                yield $i === 1_000 ? $bad($i) : "{$i}\ta\n";
            }
        };
        $thrown = self::refused(
            UniqueViolationException::class,
            $link,
            static fn(PostgresLink $link)
                => $link->copyFrom("COPY {$table} FROM STDIN", $rows(static fn(): string => "5\tsecret\n")),
        );
        self::assertSame("{$table}_pkey", $thrown->constraint);
        self::assertStringNotContainsString('secret', $thrown->getMessage());
        $thrown = self::refused(
            QueryException::class,
            $link,
            static fn(PostgresLink $link)
                => $link->copyFrom("COPY {$table} FROM STDIN", $rows(static fn(): string => "secret\ta\n")),
        );
        self::assertSame('22P02', $thrown->sqlState);
        self::assertStringContainsString("COPY {$table}, line 1001, column id", (string) $thrown->context);
        self::assertStringContainsString('"…" in line 1001, column id (SQLSTATE 22P02)', $thrown->getMessage());
        $thrown = self::refused(
            QueryException::class,
            $link,
            static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", ["1\ta\tsecret\n"]),
        );
        self::assertSame('22P04', $thrown->sqlState);

        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testACopyThatTheServerRefusesReadsNoInput(): void
    {
        $link = $this->link();
        $read = 0;
        $text = static function () use (&$read): \Generator {
            for (;;) {
                ++$read;
                yield "1\n";
            }
        };
        self::assertSame(
            '42P01',
            self::refused(
                QueryException::class,
                $link,
                static fn(PostgresLink $link) => $link->copyFrom('COPY nowhere FROM STDIN', $text()),
            )->sqlState,
        );
        self::assertSame(
            '42P01',
            self::refused(
                QueryException::class,
                $link,
                static fn(PostgresLink $link) => $link->copyFrom('COPY nowhere FROM STDIN', [[1]]),
            )->sqlState,
        );
        self::assertSame(
            '42601',
            self::refused(
                QueryException::class,
                $link,
                static fn(PostgresLink $link) => $link->copyFrom('COPY FROM STDIN', $text()),
            )->sqlState,
        );
        self::assertLessThanOrEqual(2, $read);
    }

    public function testRowsAndTextAreNotMixed(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        foreach ([[[1], "2\n"], ["1\n", [2]]] as $mixed) {
            $thrown = self::refused(
                \LogicException::class,
                $link,
                static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", $mixed),
            );
            $type = get_debug_type($mixed[1]);
            self::assertStringEndsWith(", but row 2 is of the type {$type}", $thrown->getMessage());
        }
        self::refused(
            \LogicException::class,
            $link,
            static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN (FORMAT csv)", [[1]]),
        );
        // @phpstan-ignore argument.type
        $copy = static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", [1]);
        self::refused(\LogicException::class, $link, $copy);
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testOnlyACopyFromStdinIsTaken(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        foreach (['SELECT 1', "INSERT INTO {$table} VALUES (1)", "COPY {$table} TO STDOUT", ''] as $sql) {
            self::refused(
                \LogicException::class,
                $link,
                static fn(PostgresLink $link) => $link->copyFrom($sql, ["1\n"]),
            );
        }
        foreach (["COPY {$table} FROM STDIN", "COPY {$table} TO STDOUT"] as $sql) {
            foreach ([1, 2] as $_) {
                self::refused(\LogicException::class, $link, static fn(PostgresLink $link) => $link->query($sql));
                self::refused(\LogicException::class, $link, static fn(PostgresLink $link) => $link->execute($sql));
                self::refused(
                    \LogicException::class,
                    $link,
                    static fn(PostgresLink $link): mixed => $link->stream($sql)->current(),
                );
            }
        }
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testACopyThatIsCancelledCopiesNothing(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        foreach ([0, 1, 2, 30_000] as $after) {
            $cancellation = new DeferredCancellation();
            $rows = static function () use ($after, $cancellation): \Generator {
                for ($i = 1; $i <= $after; ++$i) {
                    yield [$i];
                }
                $cancellation->cancel(new \DomainException('enough'));
                yield [0];
            };
            $thrown = self::refused(
                CancelledException::class,
                $link,
                static fn(PostgresLink $link)
                    => $link->copyFrom("COPY {$table} FROM STDIN", $rows(), $cancellation->getCancellation()),
            );
            self::assertSame('enough', $thrown->getPrevious()?->getMessage());
            self::assertSame(
                0,
                $link->query("SELECT count(*) FROM {$table}")->value(),
                "cancelled after {$after} rows",
            );
        }
    }

    public function testACopyThatWaitsForItsInputIsCancelled(): void
    {
        $link = $this->link();
        $table = self::table('id int');
        $cancellation = new DeferredCancellation();
        $rows = static function () use ($cancellation): \Generator {
            yield [1];
            delay(0.001);
            $cancellation->cancel();
            delay(0.001);
            yield [2];
        };
        self::refused(
            CancelledException::class,
            $link,
            static fn(PostgresLink $link)
                => $link->copyFrom("COPY {$table} FROM STDIN", $rows(), $cancellation->getCancellation()),
        );
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }
}
