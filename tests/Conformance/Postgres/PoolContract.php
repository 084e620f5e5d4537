<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\After;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;

/** Tests of a pool, and of a pool as a link. */
abstract class PoolContract extends LinkContract
{
    /** @var list<string> warnings of this test's pools */
    private array $warnings = [];

    #[After(1)]
    protected function forgetWarnings(): void
    {
        $this->warnings = [];
    }

    protected function link(): PostgresLink
    {
        return $this->pool(3);
    }

    protected function listener(): PostgresConnection|PostgresPool
    {
        return $this->pool(1);
    }

    /** @param mixed ...$options options of the pool by name */
    protected function pool(int $maxConnections, mixed ...$options): PostgresPool
    {
        $warn = function (string $warning): void {
            $this->warnings[] = $warning;
        };

        // @phpstan-ignore argument.type
        $poolOptions = new PostgresPoolOptions(...['onWarning' => $warn, ...$options]);

        return new PostgresPool($this->options(), $maxConnections, $poolOptions);
    }

    /** @return list<string> warnings so far */
    protected function warnings(): array
    {
        return $this->warnings;
    }

    /** @param array<string, int> $expected some of the statistics */
    protected static function assertStatistics(array $expected, PostgresPool $pool): void
    {
        self::assertSame($expected, array_intersect_key($pool->statistics(), $expected));
    }

    /** @return list<\Closure(): mixed> one call of each method that a pool has */
    protected static function verbs(PostgresPool $pool): array
    {
        return [
            static fn() => $pool->query('SELECT 1'),
            static fn() => $pool->execute('SELECT 1'),
            static fn() => iterator_to_array($pool->stream('SELECT 1')),
            static fn() => $pool->copyFrom('COPY nowhere FROM STDIN', []),
            static fn() => iterator_to_array($pool->copyTo('COPY (SELECT 1) TO STDOUT')),
            static fn() => $pool->executeScript('SELECT 1'),
            static fn() => $pool->transaction(static fn(): bool => true),
            static fn() => $pool->acquire(),
        ];
    }
}
