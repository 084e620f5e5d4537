<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Revolt\EventLoop;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Worker\TaskTimeoutException;

use function Amp\delay;

/** Tests tasks that are cancelled, or exceed the time limit, at any moment. */
trait CancellationFaults
{
    public function testTasksThatAreCancelledAtAnyMomentHaveOneOutcomeEach(): void
    {
        mt_srand(Scale::seed());
        $pool = $this->pool(2);
        $count = Scale::of(20_000);
        $futures = $outcomes = [];
        $cancelled = 0;
        for ($ended = $submitted = 0; $ended < $count; ++$ended) {
            for (; $submitted < $count && $submitted - $ended < 200; ++$submitted) {
                $cancellation = new DeferredCancellation();
                $task = new RecordedTask(
                    $submitted,
                    $this->path('starts'),
                    mt_rand(0, 50) === 0 ? mt_rand(1_000, 20_000) : 0,
                );
                $futures[$submitted] = $pool->submit($task, $cancellation->getCancellation());
                match (mt_rand(0, 40)) {
                    0 => $cancellation->cancel(),
                    1, 2 => EventLoop::delay(mt_rand(0, 5_000) / 1e6, static fn() => $cancellation->cancel()),
                    3 => EventLoop::queue(static fn() => $cancellation->cancel()),
                    default => null,
                };
            }
            $outcome = self::outcome($futures[$ended]);
            unset($futures[$ended]);
            if ($outcome instanceof CancelledException) {
                self::assertNotSame('There is no outcome', $outcome->getPrevious()?->getMessage());
                ++$cancelled;
            } else {
                self::assertSame([$ended], self::numbersOf([$outcome]));
            }
        }
        delay(0.006); // enough time for the last tasks

        self::assertGreaterThan(0, $cancelled);
        self::assertSame(
            [],
            array_filter(RecordedTask::starts($this->path('starts')), static fn(int $times): bool => $times !== 1),
            'run twice',
        );
        self::assertUsable($pool);
    }

    public function testATaskThatIsCancelledWhenTheOneBeforeItInItsBatchIsDoneEndsAtOnce(): void
    {
        $pool = $this->pool(1, gracePeriod: 0.1);
        foreach (Scale::rounds(0.5, Scale::isFull() ? 200 : 3) as $i) {
            // A batch has as many tasks as take one millisecond.
            self::outcomes(array_map(
                static fn(int $number): Future => $pool->submit(new Call('square', $number)),
                range(1, 50),
            ));
            $before = $pool->submit(new RecordedTask($i, $this->path('starts'), 1_000));
            $cancellation = new DeferredCancellation();
            $long = $pool->submit(new Call('sleep', $this->path("begun{$i}")), $cancellation->getCancellation());
            self::outcome($before);
            $cancellation->cancel();
            $at = hrtime(true);

            self::assertInstanceOf(CancelledException::class, self::outcome($long));
            self::assertLessThan(1.0, (hrtime(true) - $at) / 1e9, 'seconds');
        }
        self::assertUsable($pool);
    }

    public function testAMapThatIsCancelledAtOneOfItsResultsEndsAtOnceWhateverRunsThen(): void
    {
        $pool = $this->pool(1, gracePeriod: 0.1);
        foreach (Scale::rounds(0.5, Scale::isFull() ? 200 : 3) as $_) {
            $input = [
                new RecordedTask(0, $this->path('starts'), 0),
                new RecordedTask(1, $this->path('starts'), 1_000),
                new RecordedTask(2, $this->path('starts'), 30_000_000),
            ];
            $cancellation = new DeferredCancellation();
            $at = 0;
            $thrown = null;
            try {
                $results = $pool->map($input, RecordedTask::run(...), $cancellation->getCancellation());
                foreach ($results as $key => $result) {
                    if ($key === 1) {
                        $at = hrtime(true);
                        $cancellation->cancel();
                    }
                }
            } catch (CancelledException $thrown) {
            }

            self::assertInstanceOf(CancelledException::class, $thrown);
            self::assertLessThan(1.0, (hrtime(true) - $at) / 1e9, 'seconds');
        }
        self::assertUsable($pool);
    }

    public function testTheEndOfAnAbandonedTaskEndsNoTaskOfAnotherCaller(): void
    {
        $this->needsAProcessForEachWorker('a thread handles no signal');
        $pool = $this->pool(1, gracePeriod: 0.3);
        foreach (range(1, 10) as $number) {
            self::outcome($pool->submit(new Call('square', $number))); // further tasks wait in a busy worker
        }
        $begun = $this->path('begun');
        $task = static function (int $number) use ($begun): void {
            if ($number === 2) {
                pcntl_signal(\SIGTERM, \SIG_IGN); // so that the next task of the worker may begin before SIGKILL
                TaskFunctions::sleep($begun, 0.15);
            }
        };
        foreach ($pool->map([1, 2], $task) as $_) {
            while (!is_file($begun)) {
                usleep(50);
                clearstatcache();
            }
            break;
        }

        self::assertSame('slept', self::outcome($pool->submit(new Call('sleep', $this->path('other'), 0.5))));
    }

    public function testManyRunningTasksAreCancelledTogether(): void
    {
        $pool = $this->pool(4);
        $cancellation = new DeferredCancellation();
        $futures = [];
        for ($i = 0; $i < 50; ++$i) {
            $futures[] = $pool->submit(new Call('sleep', $this->path("begun{$i}")), $cancellation->getCancellation());
        }
        $pid = self::pidIn($this->path('begun0'));
        $cancellation->cancel();

        self::assertContainsOnlyInstancesOf(CancelledException::class, self::outcomes($futures));
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'its process has ended');
        self::assertFileDoesNotExist($this->path('begun49'));
        self::assertUsable($pool);
    }

    public function testAfterAMapThatIsCancelledAtAnyMomentThePoolIsUsable(): void
    {
        mt_srand(Scale::seed());
        $pool = $this->pool(2);
        foreach (Scale::rounds(0.3, Scale::isFull() ? 100 : 3) as $_) {
            $cancellation = new DeferredCancellation();
            EventLoop::delay(mt_rand(0, 20_000) / 1e6, static fn() => $cancellation->cancel());
            $results = 0;
            $thrown = null;
            try {
                foreach ($pool->map(
                    self::forever(),
                    TaskFunctions::square(...),
                    $cancellation->getCancellation(),
                ) as $key => $result) {
                    self::assertSame($results++, $key);
                    self::assertSame($key ** 2, $result);
                }
            } catch (CancelledException $thrown) {
            }

            self::assertInstanceOf(CancelledException::class, $thrown);
        }
        self::assertUsable($pool);
    }

    public function testTimeoutsOfManyTasksAtOnceHitTheRightOnes(): void
    {
        $pool = $this->pool(2, timeout: 0.25, gracePeriod: 0.1);
        $futures = [];
        for ($i = 0; $i < 40; ++$i) {
            $futures[] = $pool->submit(
                $i % 10 === 5
                    ? new Call('sleep', $this->path("begun{$i}"))
                    : new RecordedTask($i, $this->path('starts'), 1_000),
            );
        }
        foreach (self::outcomes($futures) as $i => $outcome) {
            if ($i % 10 === 5) {
                self::assertInstanceOf(TaskTimeoutException::class, $outcome);
            } else {
                self::assertSame([$i], self::numbersOf([$outcome]));
            }
        }
        self::assertSame(
            [],
            array_filter(RecordedTask::starts($this->path('starts')), static fn(int $times): bool => $times !== 1),
            'run twice',
        );
        self::assertUsable($pool);
    }

    /** @return \Generator<int, int> */
    private static function forever(): \Generator
    {
        for ($i = 0; ; ++$i) {
            yield $i => $i;
        }
    }
}
