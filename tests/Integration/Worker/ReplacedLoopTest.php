<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Host;
use Spindle\Tests\ReplacedLoop;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\WorkerPool;

/** EventLoop::setDriver() may replace the event loop of a {@see WorkerPool}. */
final class ReplacedLoopTest extends TidyTestCase
{
    private const REFUSAL = 'EventLoop::setDriver() has replaced the event loop of this pool. Create another pool';

    /** @param list<mixed> $expected */
    #[TestWith([false, ['result', ['result'], null, null]])]
    #[TestWith([true, [self::REFUSAL, self::REFUSAL, self::REFUSAL, null]])]
    public function testAPoolWorksInItsFirstLoopAndRefusesCallsInAnother(bool $isUsed, array $expected): void
    {
        self::assertSame(
            ['outcomes' => $expected, 'timers' => 30],
            Host::call(self::class . '::replaceLoop', [$isUsed], timeout: 20),
        );
    }

    /** @return array<string, mixed> */
    public static function replaceLoop(bool $isUsed): array
    {
        $pool = new WorkerPool(1);
        if ($isUsed) {
            $pool->submit(self::task(...))->await();
        }
        $loop = ReplacedLoop::startAfterATurn();
        $outcomes = [];
        foreach ([
            static fn(): mixed => $pool->submit(self::task(...))->await(),
            static fn(): array => iterator_to_array($pool->map([1], self::task(...))),
            $pool->close(...),
            $pool->kill(...),
        ] as $call) {
            try {
                $outcomes[] = $call();
            } catch (ExecutorClosedException $refusal) {
                $outcomes[] = $refusal->getMessage();
            }
        }
        unset($pool, $call);
        gc_collect_cycles();

        return ['outcomes' => $outcomes, 'timers' => $loop->remainingTimers()];
    }

    public static function task(): string
    {
        return 'result';
    }
}
