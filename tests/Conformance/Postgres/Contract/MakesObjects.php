<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\UnexpectedResultException;
use Spindle\Tests\Conformance\Postgres\Level;
use Spindle\Tests\Conformance\Postgres\LinkContract;
use Spindle\Tests\Conformance\Postgres\Person;
use Spindle\Tests\Conformance\Postgres\Until;
use Spindle\Tests\Postgres\Digit;
use Spindle\Tests\Postgres\Letter;

/**
 * Tests rows as objects.
 *
 * @phpstan-require-extends LinkContract
 */
trait MakesObjects
{
    public function testRowsBecomeObjects(): void
    {
        $people = $this->link()
            ->query(
                "SELECT * FROM (VALUES ('b', 1, 'Ada', NULL), ('a', 2, NULL, 'b')) AS v (kind, id, first_name, "
                    . 'other_kind)',
            )
            ->mapTo(Person::class);

        self::assertEquals([new Person(1, 'Ada', Letter::B), new Person(2, null, Letter::A, Letter::B)], $people);
    }

    public function testWhatIsOptionalMayBeMissing(): void
    {
        self::assertEquals(
            [new Person(1, 'Ada')],
            $this->link()->query("SELECT 1 AS id, 'Ada' AS \"firstName\"")->mapTo(Person::class),
        );
    }

    public function testNoRowsBecomeNoObjects(): void
    {
        self::assertSame(
            [],
            $this->link()->query("SELECT 1 AS id, 'Ada' AS first_name WHERE false")->mapTo(Person::class),
        );
    }

    public function testRowsThatDoNotFitAreRefused(): void
    {
        $link = $this->link();
        foreach ([
            'no parameter for the column "age"' => "SELECT 1 AS id, 'Ada' AS first_name, 36 AS age",
            'columns are named "id"' => "SELECT 1 AS id, 'Ada' AS first_name, 2 AS id",
            'columns match the parameter $firstName' => "SELECT 1 AS id, 'Ada' AS first_name, 'Eva' AS \"firstName\"",
            'no column for the parameter $firstName' => 'SELECT 1 AS id',
            'must be of type int, string given' => "SELECT 'secret' AS id, 'Ada' AS first_name",
            'must be of type int, null given' => "SELECT NULL::int AS id, 'Ada' AS first_name",
            '"kind" is not a case of ' . Letter::class => "SELECT 1 AS id, 'Ada' AS first_name, 'secret' AS kind",
            'must be of type ' . Letter::class . ', null given' => "SELECT 1 AS id, 'Ada' AS first_name, NULL AS kind",
        ] as $reason => $sql) {
            $message = self::thrown(
                UnexpectedResultException::class,
                static fn() => $link->query($sql)->mapTo(Person::class),
            )->getMessage();
            self::assertStringContainsString($reason, $message);
            self::assertStringContainsString(Person::class, $message);
            self::assertStringNotContainsString('secret', $message);
        }
        self::assertUsable($link);
    }

    public function testInfinityThatIsNoDateIsReported(): void
    {
        $result = $this->link()->query("SELECT 'infinity'::timestamptz AS until");
        $message = self::thrown(
            UnexpectedResultException::class,
            static fn(): array => $result->mapTo(Until::class),
        )->getMessage();

        self::assertStringContainsString('"until" is infinity', $message);
    }

    public function testACaseIsFoundByWhateverTypeItsColumnHas(): void
    {
        $link = $this->link();
        foreach (['1', "'1'", '1::numeric', '1::int8'] as $value) {
            self::assertEquals(
                [new Level(Digit::from(1), 'x')],
                $link->query("SELECT {$value} AS digit, 'x' AS name")->mapTo(Level::class),
                $value,
            );
        }
        foreach (["'abc'", '1.5::numeric', '9', 'true', "'secret'"] as $value) {
            $message = self::thrown(
                UnexpectedResultException::class,
                static fn() => $link->query("SELECT {$value} AS digit, 'x' AS name")->mapTo(Level::class),
            )->getMessage();
            self::assertStringContainsString('"digit" is not a case of ' . Digit::class, $message);
        }
        self::assertStringContainsString(
            '"kind" is not a case of ',
            self::thrown(
                UnexpectedResultException::class,
                static fn() => $link->query("SELECT 1 AS id, 'Ada' AS first_name, 7 AS kind")->mapTo(Person::class),
            )->getMessage(),
        );
    }

    public function testAClassThatCanNotBeMadeIsRefused(): void
    {
        $result = $this->link()->query('SELECT 1 AS id');
        foreach ([\Stringable::class, \Closure::class, Digit::class] as $class) {
            self::assertStringContainsString(
                'not a class that can be instantiated',
                self::thrown(UnexpectedResultException::class, static fn() => $result->mapTo($class))->getMessage(),
            );
        }
    }

    public function testAnErrorInAConstructorIsItsOwn(): void
    {
        $result = $this->link()->query("SELECT 1 AS digit, 'wrong' AS name");
        $error = self::thrown(\TypeError::class, static fn() => $result->mapTo(Level::class));

        self::assertSame('an error of its own', $error->getMessage());
    }
}
