<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\DeferredFuture;
use Amp\Future;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\UnserializableException;

use function Amp\delay;

/** Tests inputs that fail, and values that cannot be serialized. */
trait InputFaults
{
    #[TestWith([0])]
    #[TestWith([1])]
    #[TestWith([5_000])]
    public function testAnInputThatThrowsDoesSoAfterTheResultsOfWhatItGave(int $count): void
    {
        $pool = $this->pool(2);
        foreach ([false, true] as $suspends) {
            foreach ([$pool->map(...), $pool->mapUnordered(...)] as $map) {
                $results = [];
                $thrown = null;
                try {
                    $input = self::failingAfter($count, $suspends);
                    foreach ($map($input, TaskFunctions::square(...)) as $key => $result) {
                        $results[$key] = $result;
                    }
                } catch (\DomainException $thrown) {
                }
                ksort($results);

                self::assertSame('the input ends here', $thrown?->getMessage());
                self::assertSame(
                    $count === 0 ? [] : array_map(TaskFunctions::square(...), range(0, $count - 1)),
                    $results,
                );
            }
        }
        self::assertUsable($pool);
    }

    public function testAnUnserializableValueEndsTheMapAfterEarlierResults(): void
    {
        $pool = $this->pool(2);
        $input = array_fill(0, 100, 2);
        $input['bad'] = static fn(): int => 1;
        $input['behind'] = 3;
        $results = [];
        $thrown = null;
        try {
            foreach ($pool->map($input, TaskFunctions::same(...)) as $result) {
                $results[] = $result;
            }
        } catch (UnserializableException $thrown) {
        }

        self::assertStringContainsString('"bad"', (string) $thrown?->getMessage());
        self::assertSame(array_fill(0, 100, 2), $results);
        self::assertUsable($pool);
    }

    #[TestWith([0, false])]
    #[TestWith([0, true])]
    #[TestWith([2_000, false])]
    #[TestWith([2_000, true])]
    public function testAnInputThatClosesItsPoolEndsTheMapAfterTheResultsOfWhatItGave(int $count, bool $suspends): void
    {
        foreach ([true, false] as $inOrder) {
            $pool = $this->pool(2);
            $map = $inOrder ? $pool->map(...) : $pool->mapUnordered(...);
            $results = [];
            $thrown = null;
            try {
                foreach ($map(
                    self::closingAfter($count, $suspends, $pool->close(...)),
                    TaskFunctions::square(...),
                ) as $result) {
                    $results[] = $result;
                }
            } catch (ExecutorClosedException $thrown) {
            }
            $pool->close();
            sort($results);

            self::assertStringContainsString(
                'closed before the end of the input was reached',
                (string) $thrown?->getMessage(),
            );
            self::assertSame($count === 0 ? [] : array_map(TaskFunctions::square(...), range(0, $count - 1)), $results);
        }
    }

    public function testAPoolThatClosesDoesNotWaitForAnInputThatWaits(): void
    {
        $pool = $this->pool(1);
        $more = new DeferredFuture();
        $input = (static function () use ($more): \Generator {
            yield 2;
            yield $more->getFuture()->await();
        })();
        $results = [];
        $thrown = null;
        try {
            foreach ($pool->map($input, TaskFunctions::same(...)) as $result) {
                $results[] = $result;
                $pool->close();
                $more->complete(3);
            }
        } catch (ExecutorClosedException $thrown) {
        }

        self::assertNotNull($thrown);
        self::assertSame([2], $results);
    }

    public function testAnInputThatKillsItsPoolEndsTheMap(): void
    {
        $pool = $this->pool(2);

        $this->expectException(ExecutorClosedException::class);
        $this->expectExceptionMessage('killed');
        iterator_to_array($pool->map(self::closingAfter(2_000, false, $pool->kill(...)), TaskFunctions::square(...)));
    }

    #[TestWith(['close'])]
    #[TestWith(['kill'])]
    public function testATaskIsRefusedThatClosesItsPoolWhileItIsSerialized(string $end): void
    {
        $pool = $this->pool(1);
        PoolClosingValue::$close = $end === 'close' ? $pool->close(...) : $pool->kill(...);

        try {
            $pool->submit(new Call('same', new PoolClosingValue()));
            self::fail('The pool took a task although it is closed');
        } catch (ExecutorClosedException) {
            $this->addToAssertionCount(1);
        } finally {
            PoolClosingValue::$close = null;
        }
    }

    public function testAHundredTasksAmongAHundredUnserializableOnesHaveTheirOutcomes(): void
    {
        $pool = $this->pool(2);
        $futures = [];
        $refused = 0;
        for ($i = 0; $i < 200; ++$i) {
            try {
                $futures[] = $pool->submit(
                    $i % 2 === 0 ? new Call('square', $i) : new Call('square', static fn(): int => 1),
                );
            } catch (UnserializableException) {
                ++$refused;
            }
        }

        self::assertSame(100, $refused);
        self::assertSame(array_map(static fn(int $i): int => 4 * $i * $i, range(0, 99)), self::outcomes($futures));
        self::assertUsable($pool);
    }

    public function testAHundredResultsAmongAHundredUnserializableOnesArrive(): void
    {
        $pool = $this->pool(2);
        $futures = array_map(
            static fn(int $i): Future
                => $pool->submit($i % 2 === 0 ? new Call('square', $i) : new Call('unserializable', $i % 4 === 1)),
            range(0, 199),
        );

        foreach (self::outcomes($futures) as $i => $outcome) {
            if ($i % 2 === 0) {
                self::assertSame($i * $i, $outcome);
            } else {
                self::assertInstanceOf(UnserializableException::class, $outcome);
                self::assertSame(
                    ['The result', $i % 4 === 1 ? 'a closure' : 'an open stream'],
                    [$outcome->path, $outcome->what],
                );
            }
        }
        self::assertUsable($pool);
    }

    /**
     * @param \Closure(): void $close
     *
     * @return \Generator<int, int>
     */
    private static function closingAfter(int $count, bool $suspends, \Closure $close): \Generator
    {
        for ($i = 0; $i < $count; ++$i) {
            yield $i;
        }
        if ($suspends) {
            delay(0.001);
        }
        $close();
        yield $count;
    }

    /** @return \Generator<int, int> */
    private static function failingAfter(int $count, bool $suspends): \Generator
    {
        for ($i = 0; $i < $count; ++$i) {
            if ($suspends && $i % 1_000 === 500) {
                delay(0.001);
            }
            yield $i;
        }
        throw new \DomainException('the input ends here');
    }
}
