<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\CheckViolationException;
use Spindle\Postgres\DeadlockException;
use Spindle\Postgres\ExclusionViolationException;
use Spindle\Postgres\ForeignKeyViolationException;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\Types\QuotedValues;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\NotNullViolationException;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\SerializationFailureException;
use Spindle\Postgres\UniqueViolationException;

final class ServerErrorTest extends TestCase
{
    public function testMissingFieldsHaveDefaults(): void
    {
        $error = new ServerError([]);

        self::assertSame(
            ['XX000', 'ERROR', 'the server gave no message', null, null, null],
            [
                $error->sqlState(),
                $error->severity(),
                $error->message(),
                $error->position(),
                $error->column(),
                $error->field('D'),
            ],
        );
    }

    public function testTheSeverityIsNotTranslated(): void
    {
        self::assertSame('FATAL', (new ServerError(['S' => 'FATAL']))->severity());
        self::assertSame('FATAL', (new ServerError(['S' => 'SCHWERWIEGEND', 'V' => 'FATAL']))->severity());
    }

    public function testAPositionIsANumber(): void
    {
        self::assertSame(
            [7, null, null],
            array_map(
                static fn(string $position): ?int => (new ServerError(['P' => $position]))->position(),
                ['7', '', '7x'],
            ),
        );
    }

    /** @return iterable<string, array{array<string, string>, ?string}> */
    public static function columns(): iterable
    {
        yield 'the field' => [['C' => '23502', 'c' => 'a', 'D' => 'Key (b)=(1) already exists.'], 'a'];
        yield 'a key' => [['C' => '23505', 'D' => 'Key (email)=(a@b.c) already exists.'], 'email'];
        yield 'several' => [['C' => '23505', 'D' => 'Key (a, "B c")=(1, 2) already exists.'], 'a, "B c"'];
        yield 'an expression' => [['C' => '23505', 'D' => 'Key (lower(email))=(x) already exists.'], 'lower(email)'];
        yield 'a value that looks like a key' => [['C' => '23505', 'D' => 'Key (a)=(b)=(c) already exists.'], 'a'];
        yield 'a value of several lines' => [['C' => '23505', 'D' => "Key (a)=(b\nc) already exists."], 'a'];
        yield 'another language' => [
            ['C' => '23503', 'D' => 'Schlüssel (a)=(1) ist nicht in Tabelle »b« vorhanden.'],
            'a',
        ];
        yield 'a quoted one' => [['C' => '23505', 'D' => 'Key ("created""At")=(1) already exists.'], 'created"At'];
        yield 'an excluded one' => [
            ['C' => '23P01', 'D' => 'Key (c)=([4,6)) conflicts with existing key (c)=([1,5)).'],
            'c',
        ];
        yield 'a row that looks like a key' => [['C' => '23514', 'D' => 'Failing row contains (secret)=(x, 2).'], null];
        yield 'a long expression' => [
            ['C' => '23505', 'D' => 'Key ("' . str_repeat('x', 50_000) . '")=(1) already exists.'],
            str_repeat('x', 50_000),
        ];
        yield 'a detail that looks like a key' => [
            ['C' => '23505', 'D' => 'What was told of a row (secret)=(x)'],
            null,
        ];
        yield 'no key' => [['C' => '23514', 'D' => 'Failing row contains (1, 2).'], null];
        yield 'no violation' => [['C' => '22P02', 'D' => 'Key (a)=(1) already exists.'], null];
    }

    /** @param array<string, string> $fields */
    #[DataProvider('columns')]
    public function testTheColumnOfAViolationIsFound(array $fields, ?string $column): void
    {
        self::assertSame($column, (new ServerError($fields))->column());
    }

    /**
     * @return iterable<string, array{string, list<string|list<string>|null>, string}> message, values, what is shown
     */
    public static function messages(): iterable
    {
        yield 'a quoted value' => [
            'invalid input syntax for type integer: "secret"',
            ['secret'],
            'invalid input syntax for type integer: $1',
        ];
        yield 'a value without quotes' => ['value secret is out of range', ['a', 'secret'], 'value $2 is out of range'];
        yield 'a short value without quotes' => [
            'value 12 of table t12 is out of range',
            ['12'],
            'value 12 of table t12 is out of range',
        ];
        yield 'a short value in quotes' => ['invalid input: "1"', ['1'], 'invalid input: $1'];
        yield 'several' => ['"abcd" and "efgh", "abcd"', ['abcd', 'efgh'], '$1 and $2, $1'];
        yield 'one within another' => ['cannot take "secret word"', ['secret', 'secret word'], 'cannot take $2'];
        yield 'nothing and null' => ['a "" b', ['', null], 'a "" b'];
        yield 'parts' => [
            'bad {"a": "secret", "b": "xyz"}',
            [['{"a":"secret","b":"xyz"}', 'secret', 'xyz']],
            'bad {"a": $1, "b": "xyz"}',
        ];
        yield 'no values' => ['division by zero', [], 'division by zero'];
        yield 'a value that looks like a number' => [
            'invalid "$2secret" here',
            ['$2secret', 'other'],
            'invalid $1 here',
        ];
    }

    /** @param list<string|list<string>|null> $values */
    #[DataProvider('messages')]
    public function testValuesAreHiddenInTheMessage(string $message, array $values, string $shown): void
    {
        self::assertSame($shown, (new ServerError(['M' => $message], $values))->message());
        self::assertSame($shown, (new ServerError(['M' => $message]))->hidingValues($values)->message());
    }

    public function testALongFieldIsTruncatedAndShowsNoValue(): void
    {
        $secret = str_repeat('secret é ', 20_000);
        $error = new ServerError(['C' => 'P0001', 'M' => "Bad: {$secret}!", 'D' => $secret]);
        self::assertLessThanOrEqual(ServerError::MAX_FIELD_BYTES + 3, \strlen((string) $error->field('D')));
        self::assertSame(1, preg_match('//u', (string) $error->field('D')));
        self::assertSame(
            'Bad: $2',
            $error->hidingValues(QuotedValues::of(
                new Types(),
                [25, 25],
                ['other', $secret],
                (string) $error->field('M'),
            ))->message(),
        );
        self::assertSame(
            'Bad: $1',
            $error->hidingValues(
                QuotedValues::of(new Types(), [1009], [[$secret]], (string) $error->field('M')),
            )->message(),
        );

        self::assertSame(
            'invalid input: …',
            (new ServerError(['C' => '22P02', 'M' => "invalid input: \"{$secret}\""]))->hidingData()->message(),
        );
    }

    /** @return iterable<string, array{string, string, string}> SQLSTATE, message, what is shown */
    public static function encodingErrors(): iterable
    {
        yield 'invalid bytes' => [
            '22021',
            'invalid byte sequence for encoding "UTF8": 0xe9 0x09 0x78',
            'invalid byte sequence for encoding "UTF8": …',
        ];
        yield 'a translation' => [
            '22021',
            'ungültige Byte-Sequenz für Kodierung »UTF8«: 0xff',
            'ungültige Byte-Sequenz für Kodierung »UTF8«: …',
        ];
        yield 'no equivalent' => [
            '22P05',
            'character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" has no equivalent in encoding "LATIN1"',
            'character with byte sequence … in encoding "UTF8" has no equivalent in encoding "LATIN1"',
        ];
        yield 'no bytes' => ['22021', 'bad: "secret"', 'bad: "…"'];
        yield 'another error' => ['22P02', 'invalid input "secret" 0xe9', 'invalid input "…" 0xe9'];
    }

    #[DataProvider('encodingErrors')]
    public function testErrorsOfEncodingsNameTheEncodingAndShowNoBytes(
        string $sqlState,
        string $message,
        string $shown,
    ): void {
        $error = new ServerError(['C' => $sqlState, 'M' => $message]);

        self::assertSame($shown, $error->hidingData()->message());
        self::assertSame($shown, $error->hidingValues(['other'])->message());
    }

    /** @param string $context of a COPY; '' for a query */
    #[TestWith(['22P02', 'ungültige Eingabesyntax für Typ integer: »secret«', ''])]
    #[TestWith(['P0001', 'schlechter Wert secret', "COPY t, Zeile 1: »1\tsecret«"])]
    #[TestWith(['22P02', 'ungültige Eingabe: »12«secret«', 'COPY t, Zeile 1, Spalte a: »12«secret«'])]
    #[TestWith(['P0001', 'mauvaise valeur secret', "COPY t, ligne 1 : «\u{A0}1\tsecret\u{A0}»"])]
    #[TestWith(['22P02', "syntaxe en entrée invalide : «\u{A0}secret\u{A0}»", 'COPY t, ligne 1, colonne a'])]
    public function testATranslatedMessageShowsNoValue(string $state, string $message, string $context): void
    {
        $error = new ServerError(['C' => $state, 'M' => $message, 'W' => $context]);
        $hidden = $context === '' ? $error->hidingValues(['other']) : $error->hidingData();

        self::assertStringNotContainsString('secret', $hidden->message());
        self::assertStringContainsString('…', $hidden->message());
        self::assertStringContainsString(explode(' ', $message)[0], $hidden->message());
    }

    #[TestWith(['Ungültiger Wert: »%s«', 'Ungültiger Wert: …'])]
    #[TestWith(['nieprawidłowa wartość: „%s”', 'nieprawidłowa wartość: …'])]
    #[TestWith(['invalid value: "%s"', 'invalid value: …'])]
    public function testALongValueIsCutBeforeItsQuotationMark(string $format, string $shown): void
    {
        $error = new ServerError(['C' => '22P02', 'M' => \sprintf($format, str_repeat('secret', 20_000))]);

        self::assertSame($shown, $error->hidingValues(['other'])->message());
        self::assertSame($shown, $error->hidingData()->message());
    }

    public function testDataThatTheContextOfACopyQuotesIsHiddenInTheMessage(): void
    {
        $long = str_repeat('long', 10_000);
        foreach ([
            ['row secret is bad', "function f()\nCOPY t, line 2: \"2\tsecret\"", 'row … is bad in line 2'],
            ['row (2,"se cret") is bad', "COPY t, line 2: \"2\tse cret\"", 'row (2,"…") is bad in line 2'],
            ['"x" is bad', 'COPY t, line 2, column b: "x"', '"…" is bad in line 2, column b'],
            ["bad: {$long} and more", "COPY t, line 2: \"1,{$long}...\"", 'bad: … in line 2'],
            ['bad: secret and more of it', 'COPY t, line 2: "1,secret an..."', 'bad: … in line 2'],
            ['{"a": "secret"} is bad', "COPY t, line 2: \"2\t{\"a\":\"secret\"}\"", '{"a": "…"} is bad in line 2'],
            ['secret', 'a function', 'secret'],
            ['bad encoding', 'COPY t, line 2', 'bad encoding in line 2'],
            ['bad json', "JSON data, line 1: {\nCOPY t, line 2, column j: \"{\"", 'bad json in line 2, column j'],
        ] as [$message, $context, $shown]) {
            self::assertSame(
                $shown,
                (new ServerError(['C' => 'P0001', 'M' => $message, 'W' => $context]))->hidingData()->message(),
            );
        }
    }

    /** @return iterable<string, array{string, string}> context, what the message says of the place */
    public static function copies(): iterable
    {
        yield 'a column' => ['COPY t, line 2, column größe: "x"', ' in line 2, column größe'];
        yield 'a column of a binary COPY' => ['COPY t, line 2, column a', ' in line 2, column a'];
        yield 'null' => ['COPY t, line 2, column a: null input', ' in line 2, column a'];
        yield 'a column with a comma' => ['COPY t, line 2, column a,b: "x"', ' in line 2'];
        yield 'a column with a space' => ['COPY t, line 2, column first name: "x"', ' in line 2'];
        yield 'a column with a colon' => ['COPY t, line 2, column a: b: "x"', ' in line 2'];
        yield 'a column of a binary COPY, with a comma' => ['COPY t, line 2, column a, b', ' in line 2'];
        yield 'a table with a space' => ['COPY order details, line 2: "x"', ' in line 2'];
        yield 'a table like an entry' => ['COPY x, line 99: y, line 2, column id: "x"', ''];
        yield 'a table like an entry with data' => ['COPY x, line 99: "y", line 2, column id: "x"', ''];
        yield 'a table like an entry with a column' => ['COPY x, line 99, column b, line 2: "x"', ''];
        yield 'a table of two lines' => ["COPY x\nCOPY y, line 99: \"z, line 2: \"x\"", ''];
        yield 'data of two lines' => ["COPY t, line 2: \"a\nb, line 9: c\"", ' in line 2'];
        yield 'data like an entry' => ["COPY t, line 2, column a: \"a\nCOPY x, line 9: \"secret\"", ''];
        yield 'data like an entry without data' => ["COPY t, line 2: \"a\nCOPY x, line 9\"", ''];
        yield 'data like an entry, of a table with a comma' => [
            "COPY x, line 99: y, line 2: \"a\nCOPY x, line 9: \"secret\"",
            '',
        ];
        yield 'data with places' => ['COPY t, line 2: "a.php, line 12, column 3 and b.php, line 4"', ' in line 2'];
        yield 'a statement like an entry' => [
            "SQL statement \"insert into l values ('a\nCOPY that, line 42, column secret: ok')\"\n"
                . "PL/pgSQL function f() line 1 at EXECUTE\nCOPY t, line 2: \"a\"",
            '',
        ];
        yield 'a statement like an entry with data' => [
            "SQL statement \"\nCOPY that, line 42, column secret: \"ok\"\nCOPY t, line 2, column a: \"a\"",
            '',
        ];
        yield 'a statement of one line' => [
            "SQL statement \"COPY that, line 42: \"\"\"\nCOPY t, line 2: \"a\"",
            ' in line 2',
        ];
        yield 'an entry that is cut' => ["SQL statement \"\nCOPY that, line 42: \"…", ''];
        yield 'another language' => ['COPY t, Zeile 2: »a, line 9: "b"«', ''];
        yield 'another language with the same quotes' => ['COPY t, riga 2: "a, line 9: "b"', ''];
    }

    #[DataProvider('copies')]
    public function testTheMessageNamesTheLineOnlyIfTheContextIsClear(string $context, string $place): void
    {
        $error = new ServerError(['C' => '23514', 'M' => 'refused', 'W' => $context]);

        self::assertSame("refused{$place}", $error->hidingData()->message());
    }

    public function testTheMessageOfALineWithTooFewColumnsNamesTheMissingColumn(): void
    {
        $context = 'COPY t, line 2: "secret"';
        $error = new ServerError(['C' => '22P04', 'M' => 'missing data for column "b"', 'W' => $context]);

        self::assertSame('missing data for column "b" in line 2', $error->hidingData()->message());
    }

    /** @return iterable<string, array{string, string, string}> message, context, what is shown */
    public static function errorsOfParameters(): iterable
    {
        yield 'text' => ['bad', 'unnamed portal parameter $2', 'bad in the parameter $2'];
        yield 'a stream' => ['bad', "JSON data\nportal \"spindle_1\" parameter \$2 = '...'", 'bad in the parameter $2'];
        yield 'a value' => ['bad: "secret"', "unnamed portal parameter \$2 = '...'", 'bad: $2'];
        yield 'a function' => ['bad', 'PL/pgSQL function f(parameter $2)', 'bad'];
    }

    #[DataProvider('errorsOfParameters')]
    public function testTheMessageNamesTheParameterThatTheServerCanNotRead(
        string $message,
        string $context,
        string $shown,
    ): void {
        $error = new ServerError(['C' => '22021', 'M' => $message, 'W' => $context]);

        self::assertSame($shown, $error->hidingValues([null, 'secret'])->message());
    }

    public function testADumpShowsNoField(): void
    {
        $error = new ServerError(['M' => 'invalid: "secret"', 'D' => 'secret'], ['secret']);
        foreach ([print_r($error, true), var_export($error, true), json_encode($error)] as $dump) {
            self::assertStringNotContainsString('secret', (string) $dump);
        }
    }

    public function testAStatementIsStaleOnlyIfItWasNotExecuted(): void
    {
        self::assertTrue((new ServerError(['C' => '26000']))->isStale());
        self::assertTrue((new ServerError(['C' => '0A000', 'R' => 'RevalidateCachedQuery']))->isStale());
        self::assertFalse((new ServerError(['C' => '0A000', 'R' => 'DefineIndex']))->isStale());
        self::assertFalse((new ServerError(['C' => '42P01']))->isStale());
        self::assertFalse((new ServerError(['C' => 'XX000', 'M' => 'something else']))->isStale());
    }

    public function testATimeLimitIsNoCancellation(): void
    {
        self::assertTrue(
            (new ServerError(['C' => '57014', 'M' => 'canceling statement due to user request']))->isCancellation(),
        );
        self::assertFalse(
            (new ServerError(
                ['C' => '57014', 'M' => 'canceling statement due to statement timeout'],
            ))->isCancellation(),
        );
        self::assertFalse(
            (new ServerError(['C' => '55P03', 'M' => 'canceling statement due to lock timeout']))->isCancellation(),
        );
    }

    public function testEachStateHasItsException(): void
    {
        foreach ([
            '23505' => UniqueViolationException::class,
            '23503' => ForeignKeyViolationException::class,
            '23514' => CheckViolationException::class,
            '23502' => NotNullViolationException::class,
            '23P01' => ExclusionViolationException::class,
            '40P01' => DeadlockException::class,
            '40001' => SerializationFailureException::class,
            '57014' => QueryCancelledException::class,
            '23000' => QueryException::class,
            '42601' => QueryException::class,
        ] as $state => $class) {
            self::assertSame($class, QueryException::of(new ServerError(['C' => (string) $state]), 'SELECT 1')::class);
        }
    }

    public function testAnExceptionHasAllFieldsAndShowsThoseWithoutValues(): void
    {
        $fields = [
            'M' => 'bad "secret"',
            'C' => '23505',
            'V' => 'ERROR',
            'H' => 'a hint',
            'P' => '3',
            's' => 'sch',
            't' => 'tab',
            'c' => 'col',
            'd' => 'typ',
            'n' => 'con',
            'R' => 'routine',
            'D' => 'a secret',
            'W' => 'in secret',
        ];
        $exception = QueryException::of(new ServerError($fields, ['secret']), 'SELECT $1');

        self::assertSame(
            [
                'bad $1 (SQLSTATE 23505) in line 1: SE >>> LECT $1',
                '23505',
                'ERROR',
                'a hint',
                3,
                'sch',
                'tab',
                'col',
                'typ',
                'con',
                'routine',
                'SELECT $1',
                'a secret',
                'in secret',
            ],
            [
                $exception->getMessage(),
                $exception->sqlState,
                $exception->severity,
                $exception->hint,
                $exception->position,
                $exception->schema,
                $exception->table,
                $exception->column,
                $exception->dataType,
                $exception->constraint,
                $exception->routine,
                $exception->sql,
                $exception->detail,
                $exception->context,
            ],
        );
        self::assertTrue(isset($exception->detail, $exception->context));
        foreach ([
            print_r($exception, true),
            (string) $exception,
            json_encode($exception),
            json_encode((array) $exception, \JSON_PARTIAL_OUTPUT_ON_ERROR),
        ] as $dump) {
            self::assertStringNotContainsString('secret', (string) $dump);
        }
    }

    public function testMissingFieldsAreNull(): void
    {
        $exception = QueryException::of(new ServerError(['C' => '42601']), '');

        self::assertNull($exception->detail);
        self::assertFalse(isset($exception->detail) || isset($exception->context));
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('$nonsense');
        self::assertNull($exception->nonsense); // @phpstan-ignore property.notFound
    }
}
