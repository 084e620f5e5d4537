<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Scale;

/**
 * Tests statements of many fibers on one connection.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait SharesRoundTrips
{
    public function testEachFiberGetsItsOwnResultOrError(): void
    {
        $connection = $this->connect();
        $table = self::table('i int PRIMARY KEY');
        $connection->execute("INSERT INTO {$table} VALUES (0)");
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $futures = $outcomes = [];
        for ($i = 1; $i <= 200; ++$i) {
            $kind = $random->getInt(0, 7);
            $futures[$i] = Async::run(static fn(): string => self::outcome($connection, $table, $kind, $i));
            $outcomes[$i] = self::expected($kind, $i);
        }
        self::assertSame($outcomes, array_map(static fn(\Amp\Future $future): string => $future->await(), $futures));
        self::assertUsable($connection);
    }

    public function testStatementsRunInTheOrderInWhichTheyAreSent(): void
    {
        $connection = $this->connect();
        $sequence = 's_' . bin2hex(random_bytes(6));
        $connection->execute("CREATE SEQUENCE {$sequence}");
        $futures = [];
        for ($i = 1; $i <= 100; ++$i) {
            // New statements and known ones, with and without values whose encoding depends on types.
            $futures[$i] = Async::run(static fn(): mixed => match ($i % 4) {
                0 => $connection->query("SELECT nextval('{$sequence}')")->value(),
                1 => $connection->query("SELECT nextval('{$sequence}'), {$i}")->value(),
                2 => $connection->query('SELECT nextval($1::text::regclass)', [$sequence])->value(),
                default => $connection->query("SELECT nextval('{$sequence}') WHERE \$1 = 1", [1])->value(),
            });
        }
        $numbers = array_map(static fn(\Amp\Future $future): mixed => $future->await(), $futures);
        foreach (range(0, 3) as $kind) {
            $ofKind = array_values(array_filter(
                $numbers,
                static fn(int $i): bool => $i % 4 === $kind,
                \ARRAY_FILTER_USE_KEY,
            ));
            $sorted = $ofKind;
            sort($sorted);
            self::assertSame($sorted, $ofKind, "kind {$kind}");
        }
        sort($numbers);
        self::assertSame(range(1, 100), $numbers);
    }

    public function testMuchThatGoesBothWaysAtOnceDoesNotBlock(): void
    {
        $connection = $this->connect();
        $text = str_repeat('0123456789abcdef', 1 << 15);
        $futures = [];
        for ($i = 0; $i < 30; ++$i) {
            $futures[] = Async::run(
                static fn(): bool
                    => $connection->query('SELECT $1::text || $2', [$text, "{$i}"])->value() === "{$text}{$i}",
            );
        }
        foreach ($futures as $future) {
            self::assertTrue($future->await());
        }
    }

    public function testAFiberThatThrowsInBetweenAffectsNoOther(): void
    {
        $connection = $this->connect();
        $futures = [];
        for ($i = 0; $i < 30; ++$i) {
            $futures[] = Async::run(static function () use ($connection, $i): int {
                $value = self::integer($connection->query('SELECT $1::int', [$i])->value());

                return $i % 3 === 0 ? throw new \DomainException("{$i}") : $value;
            });
        }
        foreach ($futures as $i => $future) {
            if ($i % 3 === 0) {
                self::assertSame("{$i}", self::thrown(\DomainException::class, $future->await(...))->getMessage());
            } else {
                self::assertSame($i, $future->await());
            }
        }
    }

    private static function outcome(PostgresConnection $connection, string $table, int $kind, int $i): string
    {
        try {
            return (string) json_encode(match ($kind) {
                0 => $connection->query("SELECT {$i}")->value(),
                1 => $connection->query('SELECT $1::text', ["{$i}"])->value(),
                2 => \count($connection->query('SELECT generate_series(1, $1::int)', [$i * 10])),
                3 => $connection->execute("INSERT INTO {$table} VALUES (\$1)", [$i]),
                4 => $connection->execute("INSERT INTO {$table} VALUES (\$1)", [0]),
                5 => $connection->query("SELECT {$i} / \$1::int", [0]),
                6 => $connection->query("SELECT {$i}; SELECT 2"),
                default => $connection->query('SELECT $1::int', [[$i]]),
            });
        } catch (UniqueViolationException|MultipleStatementsException|InvalidParameterException $thrown) {
            return $thrown::class;
        } catch (QueryException $thrown) {
            return $thrown->sqlState;
        }
    }

    private static function expected(int $kind, int $i): string
    {
        return match ($kind) {
            0 => "{$i}",
            1 => "\"{$i}\"",
            2 => (string) ($i * 10),
            3 => '1',
            4 => UniqueViolationException::class,
            5 => '22012',
            6 => MultipleStatementsException::class,
            default => InvalidParameterException::class,
        };
    }
}
