<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Postgres\CheckViolationException;
use Spindle\Postgres\ExclusionViolationException;
use Spindle\Postgres\ForeignKeyViolationException;
use Spindle\Postgres\NotNullViolationException;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Range;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests errors by their SQLSTATE, and the server's details.
 *
 * @phpstan-require-extends LinkContract
 */
trait ReportsErrors
{
    public function testAUniqueViolationNamesConstraintAndColumns(): void
    {
        $link = $this->link();
        $table = self::table('id int PRIMARY KEY, "E mail" text, name text, UNIQUE ("E mail", name)');
        $sql = "INSERT INTO {$table} VALUES (\$1, \$2, \$3)";
        $link->execute($sql, [1, 'secret@a.b', 'c']);
        $thrown = self::refused(
            UniqueViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->execute($sql, [1, 'x', 'y']),
        );

        self::assertSame(
            ['23505', 'ERROR', "{$table}_pkey", 'id', $table, 'public', $sql],
            [
                $thrown->sqlState,
                $thrown->severity,
                $thrown->constraint,
                $thrown->column,
                $thrown->table,
                $thrown->schema,
                $thrown->sql,
            ],
        );
        self::assertSame('Key (id)=(1) already exists.', $thrown->detail);

        $thrown = self::refused(
            UniqueViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->execute($sql, [2, 'secret@a.b', 'c']),
        );
        self::assertSame(["{$table}_E mail_name_key", '"E mail", name'], [$thrown->constraint, $thrown->column]);
        self::assertStringContainsString('secret', (string) $thrown->detail);
        self::assertStringNotContainsString('secret', $thrown->getMessage());
    }

    public function testAForeignKeyViolationNamesConstraintAndColumn(): void
    {
        $link = $this->link();
        $parent = self::table('id int PRIMARY KEY');
        $table = self::table("parent int REFERENCES {$parent}");
        $thrown = self::refused(
            ForeignKeyViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->execute("INSERT INTO {$table} VALUES (7)"),
        );
        self::assertSame(
            ['23503', "{$table}_parent_fkey", 'parent', $table],
            [$thrown->sqlState, $thrown->constraint, $thrown->column, $thrown->table],
        );

        $link->executeScript("INSERT INTO {$parent} VALUES (1); INSERT INTO {$table} VALUES (1)");
        $thrown = self::refused(
            ForeignKeyViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->execute("DELETE FROM {$parent}"),
        );
        self::assertSame(
            ["{$table}_parent_fkey", 'id', $table],
            [$thrown->constraint, $thrown->column, $thrown->table],
        );
    }

    public function testOtherViolationsNameTheirConstraint(): void
    {
        $link = $this->link();
        $table = self::table(
            'a int NOT NULL, b int CONSTRAINT positive CHECK (b > 0), c int4range, EXCLUDE USING gist (c WITH &&)',
        );
        $link->execute("INSERT INTO {$table} VALUES (1, 1, '[1,5)')");

        $thrown = self::refused(
            NotNullViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->execute("INSERT INTO {$table} (b) VALUES (424242)"),
        );
        self::assertSame(['23502', 'a', $table], [$thrown->sqlState, $thrown->column, $thrown->table]);
        self::assertStringContainsString('424242', (string) $thrown->detail);
        self::assertStringNotContainsString('424242', $thrown->getMessage());

        $thrown = self::refused(
            CheckViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->execute("INSERT INTO {$table} VALUES (1, \$1)", [-1]),
        );
        self::assertSame(['23514', 'positive', $table], [$thrown->sqlState, $thrown->constraint, $thrown->table]);

        $thrown = self::refused(
            ExclusionViolationException::class,
            $link,
            static fn(PostgresLink $link) => $link->execute("INSERT INTO {$table} VALUES (1, 1, '[4,6)')"),
        );
        self::assertSame(['23P01', "{$table}_c_excl", 'c'], [$thrown->sqlState, $thrown->constraint, $thrown->column]);
    }

    public function testASyntaxErrorHasItsPosition(): void
    {
        $link = $this->link();
        $sql = "SELECT 'ä', \$1::int FRM x";
        foreach ([
            static fn(PostgresLink $link) => $link->query($sql, [1]),
            static fn(PostgresLink $link) => $link->query($sql, ['1']),
            static fn(PostgresLink $link) => $link->execute($sql, [1]),
            static fn(PostgresLink $link) => iterator_to_array($link->stream($sql, [1])),
        ] as $verb) {
            $thrown = self::refused(QueryException::class, $link, $verb);
            self::assertSame(
                [QueryException::class, '42601', (int) mb_strpos($sql, 'x') + 1, $sql, 'scanner_yyerror'],
                [$thrown::class, $thrown->sqlState, $thrown->position, $thrown->sql, $thrown->routine],
            );
            self::assertSame(
                'syntax error at or near "x" (SQLSTATE 42601) in line 1: SELECT \'*\', $1::int FRM >>> x',
                $thrown->getMessage(),
            );
            self::assertSame(
                [null, null, null, null, null, null],
                [
                    $thrown->hint,
                    $thrown->constraint,
                    $thrown->column,
                    $thrown->table,
                    $thrown->detail,
                    $thrown->context,
                ],
            );
        }
    }

    public function testAHintIsSeparateFromTheMessage(): void
    {
        $link = $this->link();
        $table = self::table('name text');
        $thrown = self::refused(
            QueryException::class,
            $link,
            static fn(PostgresLink $link) => $link->query("SELECT nam FROM {$table}"),
        );

        self::assertSame(
            [
                '42703',
                "column \"nam\" does not exist (SQLSTATE 42703) in line 1: SELECT >>> nam FROM {$table}",
                "Perhaps you meant to reference the column \"{$table}.name\".",
            ],
            [$thrown->sqlState, $thrown->getMessage(), $thrown->hint],
        );
    }

    public function testAnErrorOfAFunctionHasAllFieldsItWasRaisedWith(): void
    {
        $link = $this->link();
        $function = 'f_' . bin2hex(random_bytes(6));
        $link->execute(<<<SQL
            CREATE FUNCTION {$function}() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
                RAISE EXCEPTION 'a message' USING ERRCODE = 'ZZ123', DETAIL = 'a detail', HINT = 'a hint',
                    SCHEMA = 'a schema', TABLE = 'a table', COLUMN = 'a column',
                    DATATYPE = 'a type', CONSTRAINT = 'a constraint';
            END $$
            SQL);
        $thrown = self::refused(
            QueryException::class,
            $link,
            static fn(PostgresLink $link) => $link->query("SELECT {$function}()"),
        );

        self::assertSame(
            [
                'a message (SQLSTATE ZZ123)',
                'ZZ123',
                'ERROR',
                'a hint',
                'a schema',
                'a table',
                'a column',
                'a type',
                'a constraint',
                'a detail',
            ],
            [
                $thrown->getMessage(),
                $thrown->sqlState,
                $thrown->severity,
                $thrown->hint,
                $thrown->schema,
                $thrown->table,
                $thrown->column,
                $thrown->dataType,
                $thrown->constraint,
                $thrown->detail,
            ],
        );
        self::assertStringContainsString("{$function}() line 2 at RAISE", (string) $thrown->context);
        self::assertTrue(isset($thrown->detail, $thrown->context));
        // @phpstan-ignore property.notFound
        self::thrown(\LogicException::class, static fn(): mixed => $thrown->nonsense);
    }

    public function testATimeLimitOfTheServerIsACancelledQuery(): void
    {
        $link = $this->link();
        $thrown = self::refused(
            QueryCancelledException::class,
            $link,
            static fn(PostgresLink $link) => $link->transaction(static function (PostgresLink $link): void {
                $link->execute('SET LOCAL statement_timeout = 20');
                $link->query('SELECT pg_sleep(1000)');
            }),
        );

        self::assertSame('57014', $thrown->sqlState);
        self::assertStringContainsString('statement timeout', $thrown->getMessage());
    }

    public function testAnErrorDoesNotShowValuesOfParameters(): void
    {
        $link = $this->link();
        foreach ([
            ['SELECT $1::text::int', ['secret'], 'invalid input syntax for type integer: $1'],
            ['SELECT $2::text::uuid, $1::int', [1, 'secret'], 'invalid input syntax for type uuid: $2'],
            ['SELECT $1::text::jsonb', ['{"secret'], 'invalid input syntax for type json'],
            [
                'SELECT $1::text::timestamptz',
                ["secret's"],
                'invalid input syntax for type timestamp with time zone: $1',
            ],
            ['SELECT to_timestamp($1, $2)', ['secret', 'YYYY'], 'invalid value'],
            ['SELECT set_config($1, $2, false)', ['work_mem', 'secret'], 'invalid value for parameter $1: $2'],
            ['SELECT $1::regclass', ['secret'], 'relation $1 does not exist'],
            ['SELECT $1::text::int', ["secret\nsecret"], 'invalid input syntax for type integer'],
        ] as [$sql, $parameters, $message]) {
            foreach (['the first time', 'once the statement is known'] as $when) {
                $thrown = self::refused(
                    QueryException::class,
                    $link,
                    static fn(PostgresLink $link) => $link->query($sql, $parameters),
                );
                self::assertStringNotContainsString('secret', $thrown->getMessage(), "{$sql} {$when}");
                self::assertStringContainsString($message, $thrown->getMessage(), $when);
                self::assertSame($sql, $thrown->sql);
            }
        }
    }

    public function testAStringThatIsNoJsonIsReportedWithTheRemedy(): void
    {
        $link = $this->link();
        foreach (['json', 'jsonb'] as $type) {
            self::assertStringStartsWith(
                'invalid input syntax for type json in the parameter $1. A string must be JSON already. '
                    . 'Pass an array or a result of json_encode() (SQLSTATE 22P02)',
                self::refused(
                    QueryException::class,
                    $link,
                    static fn(PostgresLink $link) => $link->query("SELECT \$1::{$type}", ['hello']),
                )->getMessage(),
            );
        }
        self::assertStringNotContainsString(
            'json_encode',
            self::refused(
                QueryException::class,
                $link,
                static fn(PostgresLink $link) => $link->query("SELECT 'hello'::jsonb, \$1::int", [1]),
            )->getMessage(),
        );
    }

    #[TestWith(['timestamptz', 1_800_000_000, '22008'])]
    #[TestWith(['timestamp', 'tomorrow at noon', '22007'])]
    #[TestWith(['date', '31.31.2026', '22008'])]
    #[TestWith(['interval', 'long', '22007'])]
    public function testAValueThatIsNoTimeIsReportedWithTheRemedy(string $type, int|string $value, string $state): void
    {
        $message = self::refused(
            QueryException::class,
            $this->link(),
            static fn(PostgresLink $link) => $link->query("SELECT \$1::{$type}", [$value]),
        )->getMessage();

        self::assertStringContainsString(
            'Pass a DateTimeImmutable or a DateInterval, or write to_timestamp($1) for a Unix time',
            $message,
        );
        self::assertStringContainsString("(SQLSTATE {$state})", $message);
    }

    public function testParameterValuesInMessagesOfFunctionsAreHiddenInAnyForm(): void
    {
        $link = $this->link();
        $function = 'f_' . bin2hex(random_bytes(6));
        $link->execute(
            "CREATE FUNCTION {$function}(a anyelement) RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
                . "RAISE EXCEPTION 'bad %', a; END $$",
        );
        foreach ([
            ['text', 'secret', 'bad $1'],
            ['text[]', ['a', 'secret', 'se"cr\et'], 'bad {a,$1,$1}'],
            ['text[]', '{"a",secret}', 'bad {a,$1}'],
            [
                'jsonb',
                ['password' => 'secret', 'list' => [[1, "sec\"ret\u{e4}"]]],
                'bad {"list": [[1, $1]], "password": $1}',
            ],
            ['jsonb', '{"password":"secret"}', 'bad {"password": $1}'],
            ['bytea', 'secret', 'bad $1'],
            ['tstzrange', new Range(new \DateTimeImmutable('1980-02-03 04:05:06 UTC')), 'bad ["$1+00",)'],
            ['timestamptz', new \DateTimeImmutable('1980-02-03 04:05:06 UTC'), 'bad $1+00'],
            ['date', new \DateTimeImmutable('1980-02-03'), 'bad $1'],
        ] as [$type, $value, $message]) {
            foreach (['query', 'stream'] as $verb) {
                $thrown = self::refused(
                    QueryException::class,
                    $link,
                    static fn(PostgresLink $link): mixed => $verb === 'query' ? $link->query(
                        "SELECT {$function}(\$1::{$type})",
                        [$value],
                    ) : iterator_to_array($link->stream("SELECT {$function}(\$1::{$type})", [$value])),
                );
                self::assertSame("{$message} (SQLSTATE P0001)", $thrown->getMessage(), "{$type} {$verb}");
            }
        }
    }

    public function testAnErrorIsReportedEvenIfItsValueCanNotBeEncodedAgain(): void
    {
        $link = $this->link();
        $table = self::table('a jsonb UNIQUE');
        $thrown = self::thrown(
            QueryException::class,
            static fn() => $link->transaction(static function (Transaction $transaction) use ($table): void {
                $value = new class ($transaction) implements \JsonSerializable {
                    public function __construct(private readonly Transaction $transaction) {}

                    public function jsonSerialize(): mixed
                    {
                        return $this->transaction->query('SELECT 1')->value();
                    }
                };
                $transaction->execute("INSERT INTO {$table} VALUES (\$1), (\$1)", [$value]);
            }),
        );

        self::assertSame(['23505', "{$table}_a_key"], [$thrown->sqlState, $thrown->constraint]);
    }

    public function testNoRuntimeConditionIsAnError(): void
    {
        $link = $this->link();
        $table = self::table('id int PRIMARY KEY');
        foreach ([
            static fn(PostgresLink $link) => $link->query('SELECT 1 / 0'),
            static fn(PostgresLink $link) => $link->query('SELECT $1::int', [\NAN]),
            static fn(PostgresLink $link) => $link->query('SELECT $1::int', [1e300]),
            static fn(PostgresLink $link) => $link->query('SELECT $1::int2', [100_000]),
            static fn(PostgresLink $link) => $link->query('SELECT $1::jsonb', ['{']),
            static fn(PostgresLink $link) => $link->query('SELECT $1::date', ['never']),
            static fn(PostgresLink $link) => $link->query('SELECT 1, 2 AS a, 3 AS a')->all(),
            static fn(PostgresLink $link) => $link->execute("INSERT INTO {$table} VALUES (NULL)"),
            static fn(PostgresLink $link) => iterator_to_array($link->stream('SELECT 1 / 0')),
            static fn(PostgresLink $link) => iterator_to_array($link->copyTo('COPY (SELECT 1 / 0) TO STDOUT')),
            static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", ["x\n"]),
            static fn(PostgresLink $link) => $link->executeScript('SELECT 1 / 0'),
        ] as $verb) {
            self::assertNotInstanceOf(\Error::class, self::refused(PostgresException::class, $link, $verb));
        }
    }
}
