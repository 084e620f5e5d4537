<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerPool;

use function Amp\async;
use function Amp\delay;

/** Tests that the results of a map which its loop has not read yet take a limited amount of memory. */
final class MapMemoryTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    private const MAX_BYTES = 80 << 20;

    /** Number of tiny tasks after which a batch has thousands of tasks. */
    private const TINY = 20_000;

    private int $before = 0;

    protected function setUp(): void
    {
        $this->before = memory_get_usage();
        memory_reset_peak_usage();
    }

    #[TestWith(['map'])]
    #[TestWith(['mapUnordered'])]
    public function testResultsThatBecomeLargeDoNotFillTheMemory(string $method): void
    {
        $pool = new WorkerPool(2);
        $count = $bytes = 0;
        $results = $method === 'map'
            ? $pool->map(range(1, self::TINY + 200), self::growing())
            : $pool->mapUnordered(range(1, self::TINY + 200), self::growing());
        foreach ($results as $result) {
            ++$count;
            if (\is_string($result)) {
                $bytes += \strlen($result);
                delay(0.001); // the event loop reads more results than this loop
            }
        }
        $pool->close();

        self::assertSame([self::TINY + 200, 200 << 20], [$count, $bytes]);
        self::assertLessThan(self::MAX_BYTES, memory_get_peak_usage() - $this->before, 'bytes at most');
    }

    public function testLargeResultsBehindASlowOneDoNotFillTheMemory(): void
    {
        $pool = new WorkerPool(2);
        $order = [];
        $tasks = range(-self::TINY, 200);
        $task = static function (int $number): int|string {
            if ($number === 0) {
                usleep(500_000);
            }

            return $number < 0 ? $number : str_repeat(\chr($number), 1 << 20);
        };
        foreach ($pool->map($tasks, $task) as $result) {
            $order[] = \is_string($result) ? \ord($result[0]) : $result;
        }
        $pool->close();

        self::assertSame($tasks, $order);
        self::assertLessThan(self::MAX_BYTES, memory_get_peak_usage() - $this->before, 'bytes at most');
    }

    public function testLargeExceptionsBehindASlowTaskDoNotFillTheMemory(): void
    {
        $pool = new WorkerPool(2);
        $gate = $this->path('gate');
        $task = static function (int $number) use ($gate): int {
            while ($number === 0 && !is_file($gate)) {
                usleep(1000);
            }

            return $number === 0 ? 0 : throw new \RuntimeException(str_repeat('x', 200_000));
        };
        $loop = async(static function () use ($pool, $task): array {
            $outcomes = [];
            foreach ($pool->mapOutcomes(range(0, 1000), $task) as $outcome) {
                $outcomes[] = $outcome->succeeded();
            }

            return $outcomes;
        });
        Eventually::standsStill(static fn(): int => (int) $pool->statistics()['failed_total'], 'no task starts', 30.0);
        $peak = memory_get_peak_usage() - $this->before;
        touch($gate);
        $outcomes = $loop->await();
        $pool->close();

        self::assertSame([true, ...array_fill(0, 1000, false)], $outcomes);
        self::assertLessThan(self::MAX_BYTES, $peak, 'bytes at most');
    }

    public function testRetriedTasksWithLargeResultsDoNotFillTheMemory(): void
    {
        $pool = new WorkerPool(2, new TaskRetryPolicy(1, onThrow: [\DomainException::class], delay: 0.001));
        $task = static function (int $number): string {
            TaskContext::current()->attempt === 1 && throw new \DomainException();

            return str_repeat(\chr($number), 1 << 20);
        };
        $order = [];
        foreach ($pool->map(range(1, 200), $task) as $result) {
            $order[] = \ord($result[0]);
            delay(0.001);
        }
        $pool->close();

        self::assertSame(range(1, 200), $order);
        self::assertLessThan(self::MAX_BYTES, memory_get_peak_usage() - $this->before, 'bytes at most');
    }

    public function testOtherTasksRunWhileTheBufferOfAMapIsFull(): void
    {
        $pool = new WorkerPool(2);
        $other = [];
        $count = 0;
        foreach ($pool->map(range(1, self::TINY + 100), self::growing()) as $result) {
            ++$count;
            if (\is_string($result) && $other === []) {
                self::awaitFull($pool);
                $other[] = $pool->submit(static fn(): int => 1)->await();
                foreach ($pool->map([2, 3], static fn(int $number): int => $number) as $number) {
                    $other[] = $number;
                }
            }
        }
        $pool->close();

        self::assertSame([[1, 2, 3], self::TINY + 100], [$other, $count]);
    }

    public function testAPoolThatIsClosedWhileTheBufferIsFullYieldsAllResults(): void
    {
        $pool = new WorkerPool(2);
        $closing = null;
        $count = 0;
        $refused = null;
        try {
            foreach ($pool->map(range(1, self::TINY + 100), self::growing()) as $result) {
                ++$count;
                if (\is_string($result) && $closing === null) {
                    self::awaitFull($pool);
                    $closing = async($pool->close(...));
                }
            }
        } catch (ExecutorClosedException $refused) {
        }
        $closing?->await();

        self::assertTrue($refused !== null || $count === self::TINY + 100);
        self::assertGreaterThan(self::TINY, $count);
    }

    #[TestWith(['map'])]
    #[TestWith(['mapUnordered'])]
    public function testTheLoopThatReadsTheResultsCanCloseThePoolWhileTheBufferIsFull(string $method): void
    {
        $pool = new WorkerPool(2);
        $count = 0;
        $isClosed = false;
        $results = $method === 'map'
            ? $pool->map(range(1, self::TINY + 100), self::growing())
            : $pool->mapUnordered(range(1, self::TINY + 100), self::growing());
        try {
            foreach ($results as $result) {
                ++$count;
                if (\is_string($result) && !$isClosed) {
                    self::awaitFull($pool);
                    $pool->close(new TimeoutCancellation(10));
                    $isClosed = true;
                }
            }
        } catch (ExecutorClosedException $refused) {
            self::assertStringContainsString('was closed before the end of the input', $refused->getMessage());
        }

        self::assertTrue($isClosed);
        self::assertGreaterThan(self::TINY, $count);
    }

    /** Waits until no more tasks run, because their results have no room. */
    private static function awaitFull(WorkerPool $pool): void
    {
        $attempts = static fn(): int => (int) $pool->statistics()['attempts_total'];
        Eventually::standsStill($attempts, 'no more tasks run', 30.0);
    }

    /** @return \Closure(int): (int|string) */
    private static function growing(): \Closure
    {
        $tiny = self::TINY;

        return static fn(int $number): int|string => $number <= $tiny ? $number : str_repeat('x', 1 << 20);
    }
}
