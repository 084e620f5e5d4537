<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Host;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

/** Results that are within their limit, but exceed the memory_limit together with the other memory of the process. */
final class ScarceMemoryTest extends TidyTestCase
{
    use UsesCluster;

    protected function deadline(): int
    {
        return 180;
    }

    /** @return iterable<string, array{string, string}> */
    public static function results(): iterable
    {
        yield 'rows' => ["SELECT repeat('x', 3000) FROM generate_series(1, 6500)", ''];
        yield 'large rows' => ["SELECT repeat('x', 1000000) FROM generate_series(1, 20)", ''];
        yield 'one row' => ["SELECT repeat('x', 14000000)", ''];
        yield 'values' => ["SELECT repeat('x', 100) FROM generate_series(1, 40000)", 'all'];
        yield 'small values' => ['SELECT i FROM generate_series(1, 80000) AS i', 'all'];
        yield 'a value' => ["SELECT repeat('x', 14000000)", 'value'];
        yield 'JSON' => ["SELECT to_jsonb(repeat('x', 14000000))", 'value'];
    }

    #[DataProvider('results')]
    public function testResultsThatExceedTheMemoryTogetherAreExceptions(string $sql, string $method): void
    {
        $outcomes = Host::call(
            MemoryPrograms::class . '::keepResults',
            [Cluster::shared()->dsn(), $sql, $method],
            options: ['-d', 'memory_limit=64M'],
        );
        self::assertIsArray($outcomes);
        [$messages, $during, $after] = $outcomes;
        self::assertIsArray($messages);

        self::assertNotSame(['', '', '', ''], $messages);
        foreach ($messages as $message) {
            self::assertIsString($message);
            if ($message === '') {
                continue;
            }
            self::assertStringStartsWith('The process has too little memory left for ', $message);
            self::assertStringContainsString(' of 67108864 bytes (memory_limit) are in use', $message);
        }
        self::assertSame(range(1, 20), $during);
        self::assertSame([10_000, 10_000, 10_000, 10_000], $after);
    }

    public function testSmallResultsAndStreamsNeedLittleMemory(): void
    {
        $outcomes = Host::call(
            MemoryPrograms::class . '::haveLittleMemory',
            [Cluster::shared()->dsn()],
            options: ['-d', 'memory_limit=64M'],
        );
        self::assertIsArray($outcomes);

        foreach (['a large result', 'a large row', 'a large row of a COPY'] as $refused) {
            self::assertIsString($outcomes[$refused]);
            self::assertStringStartsWith('The process has too little memory left', $outcomes[$refused], $refused);
            unset($outcomes[$refused]);
        }
        self::assertSame(
            ['a value' => 1, 'a small result' => 300, 'a stream' => 20_000, 'a transaction' => 2, 'used' => true],
            $outcomes,
        );
    }
}
