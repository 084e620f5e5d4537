<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\TaskTimeoutException;

/** Tests tasks that send and print more than the pool buffers. */
trait Floods
{
    private const FLOOD = 50 << 20;

    public function testAFloodOfResultsComesThrough(): void
    {
        $pool = $this->pool(2);
        $sizes = [];
        $bytes = 1 << 20;
        foreach ($pool->map(array_fill(0, intdiv(self::FLOOD, $bytes), $bytes), TaskFunctions::bytes(...)) as $result) {
            $sizes[] = \strlen($result);
        }

        self::assertSame(self::FLOOD, array_sum($sizes));
        self::assertUsable($pool);
    }

    public function testAFloodOfOutputComesThrough(): void
    {
        $received = ['o' => 0, 'e' => 0];
        $pool = $this->pool(2, onOutput: static function (string $bytes, bool $isError) use (&$received): void {
            $received[$isError ? 'e' : 'o'] += \strlen($bytes);
        });
        $outcomes = self::outcomes([
            $pool->submit(new Call('echo', self::FLOOD)),
            $pool->submit(new Call('writeErrors', self::FLOOD)),
            $pool->submit(new Call('square', 6)),
        ]);

        self::assertSame(['echoed', 'written', 36], $outcomes);
        self::assertUsable($pool);
        $pool->close();
        self::assertSame(['o' => self::FLOOD, 'e' => self::FLOOD], $received);
    }

    public function testAFloodOfReportsComesThrough(): void
    {
        $received = 0;
        $pool = $this->pool(2, onReport: static function (mixed $report) use (&$received): void {
            $received += \is_string($report) ? \strlen($report) : 0;
        });
        $outcomes = self::outcomes(
            [$pool->submit(new Call('report', 50, 1 << 20)), $pool->submit(new Call('report', 50_000, 10))],
        );

        self::assertSame(['reported', 'reported'], $outcomes);
        self::assertSame((50 << 20) + 500_000, $received);
        self::assertUsable($pool);
    }

    public function testAFloodToASlowReaderDoesNotFillTheMemory(): void
    {
        $pool = $this->pool(1, onOutput: static function (): void {
            usleep(100);
        });
        $before = memory_get_usage();
        memory_reset_peak_usage();

        self::assertSame('echoed', self::outcome($pool->submit(new Call('echo', self::FLOOD))));
        self::assertLessThan(16 << 20, memory_get_peak_usage() - $before, 'bytes at most');
        self::assertUsable($pool);
    }

    public function testATaskThatTimesOutInTheMiddleOfAFloodIsEnded(): void
    {
        $pool = $this->pool(1, timeout: 0.3, gracePeriod: 0.2);
        $futures = [
            $pool->submit(new Call('echo', \PHP_INT_MAX)),
            $pool->submit(new Call('writeErrors', \PHP_INT_MAX)),
            $pool->submit(new Call('report', \PHP_INT_MAX, 1 << 16)),
        ];

        self::assertContainsOnlyInstancesOf(TaskTimeoutException::class, self::outcomes($futures));
        self::assertUsable($pool);
    }
}
