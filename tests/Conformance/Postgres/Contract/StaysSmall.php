<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\ConnectionContract;

/**
 * Tests that large data are not held in memory as a whole.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait StaysSmall
{
    private const ROWS = 50_000;

    public function testAStreamDoesNotHoldItsRows(): void
    {
        $connection = $this->connect();
        $count = 0;
        $growth = self::growth(function () use ($connection, &$count): void {
            foreach ($connection->stream(
                "SELECT i, repeat('x', 200) AS x FROM generate_series(1, " . self::ROWS . ') AS i',
            ) as $_) {
                if (++$count === 1) {
                    $this->connect()->query('SELECT pg_sleep(0.1)'); // time for rows to arrive that are not read
                }
            }
        });

        self::assertSame(self::ROWS, $count);
        self::assertLessThan(5 << 20, $growth);
    }

    public function testACopyInDoesNotHoldItsRows(): void
    {
        $connection = $this->connect();
        $table = self::table('i int, x text');
        $rows = static function (): \Generator {
            for ($i = 0; $i < self::ROWS; ++$i) {
                yield [$i, str_repeat('x', 200)];
            }
        };
        $growth = self::growth(static fn(): int => $connection->copyFrom("COPY {$table} FROM STDIN", $rows()));

        self::assertSame(self::ROWS, $connection->query("SELECT count(*) FROM {$table}")->value());
        self::assertLessThan(5 << 20, $growth);
    }

    public function testAScriptDoesNotHoldItsRows(): void
    {
        $connection = $this->connect();
        $script = "SELECT repeat('x', 200) FROM generate_series(1, " . self::ROWS . ')';

        self::assertLessThan(5 << 20, self::growth(static fn() => $connection->executeScript($script)));
    }

    public function testManyStatementsLeaveNothingBehind(): void
    {
        $connection = $this->connect(statementCache: 10);
        $work = static function () use ($connection): void {
            for ($i = 0; $i < 500; ++$i) {
                $connection->query("SELECT {$i}");
                $connection->query('SELECT $1::text', [str_repeat('x', 1000)])->all();
                foreach ($connection->stream('SELECT generate_series(1, 3)') as $_) {
                    break;
                }
            }
        };
        $work();
        gc_collect_cycles();
        $before = memory_get_usage();
        $work();
        gc_collect_cycles();

        self::assertLessThan(200_000, memory_get_usage() - $before);
    }
}
