<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\Future;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Conformance\Postgres\PoolContract;

/**
 * Tests that long work delays no other work.
 *
 * @phpstan-require-extends PoolContract
 */
trait RunsSideBySide
{
    public function testTenSleepsInTenFibersAreSleptAtTheSameTime(): void
    {
        $pool = $this->pool(10);
        $begun = $ended = [];
        foreach (array_map(
            static fn(): Future => Async::run(
                static fn(): array
                    => $pool->query(
                        'SELECT clock_timestamp() AS begun, pg_sleep(1), clock_timestamp() AS ended',
                    )->allNumeric()[0],
            ),
            range(1, 10),
        ) as $future) {
            [$begun[], , $ended[]] = $future->await();
        }

        self::assertLessThan(min($ended), max($begun), 'the last one began before the first one ended');
    }

    public function testAFiberThatWaitsForAPoolIsNotGarbage(): void
    {
        self::assertSame([[1, null], [2, null]], Async::alone(function (): array {
            $pool = $this->pool(1);
            $second = Async::run(
                static fn(): array => $pool->query('SELECT 2, pg_sleep(0.05)::text || NULL')->allNumeric()[0],
            );

            return [
                $pool->transaction(
                    static fn(Transaction $transaction): array
                        => $transaction->query('SELECT 1, pg_sleep(0.05)::text || NULL')->allNumeric()[0],
                ),
                $second->await(),
            ];
        }));
    }

    public function testAStatementThatTakesLongDoesNotHoldUpOthers(): void
    {
        $pool = $this->pool(2);
        $gate = new Gate();
        $slow = Async::run(static fn(): mixed => $pool->query($gate->statement())->value());
        $gate->awaitStatements(1);
        $futures = [];
        for ($i = 0; $i < 50; ++$i) {
            $futures[] = Async::run(
                static fn(): mixed
                    => $pool->query($i % 2 === 0 ? 'SELECT $1::int' : "SELECT \$1::int + 0 * {$i}", [$i])->value(),
            );
        }
        self::assertSame(range(0, 49), array_map(static fn(Future $future): mixed => $future->await(), $futures));
        self::assertSame(1, $gate->waiting());
        $gate->open();
        self::assertSame('passed', $slow->await());
    }

    public function testAStatementThatWasShortAndTakesLongNowHoldsUpNoneThatComesLater(): void
    {
        $pool = $this->pool(2);
        $gate = new Gate();
        $key = self::table('open bool');
        $sql = "SELECT CASE WHEN (SELECT count(*) FROM {$key}) = 0 THEN 'short' ELSE ({$gate->statement()}) END";
        foreach (range(1, 20) as $_) {
            self::assertSame('short', $pool->query($sql)->value());
            $pool->query('SELECT 1');
        }
        Observer::ask("INSERT INTO {$key} VALUES (true)");
        $slow = Async::run(static fn(): mixed => $pool->query($sql)->value());
        $gate->awaitStatements(1);
        $futures = array_map(
            static fn(): Future => Async::run(static fn(): mixed => $pool->query('SELECT 1')->value()),
            range(1, 50),
        );
        self::assertSame(
            array_fill(0, 50, 1),
            array_map(static fn(Future $future): mixed => $future->await(), $futures),
        );
        self::assertSame(1, $gate->waiting());
        $gate->open();
        self::assertSame('passed', $slow->await());
    }

    public function testShortStatementsShareConnections(): void
    {
        $pool = $this->pool(2);
        foreach (range(1, 3) as $_) {
            $pool->query('SELECT pg_backend_pid()');
        }
        $futures = array_map(
            static fn(): Future => Async::run(static fn(): mixed => $pool->query('SELECT pg_backend_pid()')->value()),
            range(1, 100),
        );
        $pids = array_map(static fn(Future $future): int => self::integer($future->await()), $futures);

        self::assertLessThanOrEqual(2, \count(array_unique($pids)));
        self::assertLessThanOrEqual(2, \count($this->backends()));
    }
}
