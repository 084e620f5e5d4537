<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Postgres\PostgresPool;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\Executor;
use Spindle\Worker\InlineExecutor;
use Spindle\Worker\WorkerPool;

use function Amp\delay;

/** Tests that loops over results leave nothing that only PHP's garbage collector can free. */
final class GarbageTest extends TidyTestCase
{
    use CatchesThrown;
    use UsesCluster;

    private const ROUNDS = 50;

    protected function tearDown(): void
    {
        gc_enable();
    }

    /** @return iterable<string, array{\Closure(): (\Closure(): \Generator<mixed, mixed>)}> begin a loop */
    public static function loops(): iterable
    {
        yield 'run()' => [static function (): \Closure {
            $pool = new CommandPool(2);

            return static function () use ($pool): \Generator {
                yield from $pool->run(self::commands());
            };
        }];
        yield 'runInOrder() with an array' => [static function (): \Closure {
            $pool = new CommandPool(2);

            return static function () use ($pool): \Generator {
                yield from $pool->runInOrder([...self::commands()]);
            };
        }];
        yield 'map()' => [static function (): \Closure {
            $pool = new WorkerPool(2);

            return static fn(): \Generator => $pool->map(self::numbers(), abs(...));
        }];
        yield 'mapOutcomesUnordered() with an array' => [static function (): \Closure {
            $pool = new WorkerPool(2);

            return static fn(): \Generator => $pool->mapOutcomesUnordered([1, 2, 3], abs(...));
        }];
        yield 'map() in this process' => [static function (): \Closure {
            $executor = new InlineExecutor();

            return static fn(): \Generator => $executor->map(self::numbers(), abs(...));
        }];
        yield 'copyTo()' => [static function (): \Closure {
            $pool = new PostgresPool(Cluster::shared()->dsn());

            return static fn(): \Generator => $pool->copyTo('COPY (SELECT generate_series(1, 3)) TO STDOUT');
        }];
    }

    /** @param \Closure(): (\Closure(): \Generator<mixed, mixed>) $prepare */
    #[DataProvider('loops')]
    public function testALoopToItsEndLeavesNothingToTheGarbageCollector(\Closure $prepare): void
    {
        $begin = $prepare();

        self::assertSame(0, self::collectedAfter(static function () use ($begin): void {
            self::assertCount(3, iterator_to_array($begin(), false));
        }));
    }

    /** @param \Closure(): (\Closure(): \Generator<mixed, mixed>) $prepare */
    #[DataProvider('loops')]
    public function testALoopThatIsLeftLeavesNothingToTheGarbageCollector(\Closure $prepare): void
    {
        $begin = $prepare();

        self::assertSame(0, self::collectedAfter(static function () use ($begin): void {
            foreach ($begin() as $value) {
                break;
            }
        }));
    }

    /** @return iterable<string, array{\Closure(): Executor}> */
    public static function executors(): iterable
    {
        yield 'workers' => [static fn(): Executor => new WorkerPool(2)];
        yield 'this process' => [static fn(): Executor => new InlineExecutor()];
    }

    /** @param \Closure(): Executor $create */
    #[DataProvider('executors')]
    public function testALoopThatWasCancelledBeforeItBeganLeavesNothing(\Closure $create): void
    {
        $executor = $create();
        $cancellation = new DeferredCancellation();
        $cancellation->cancel();

        self::assertSame(0, self::collectedAfter(static function () use ($executor, $cancellation): void {
            self::thrown(
                CancelledException::class,
                static fn() => iterator_to_array($executor->map([1, 2], abs(...), $cancellation->getCancellation())),
            );
        }));
    }

    /** @param \Closure(): Executor $create */
    #[DataProvider('executors')]
    public function testARefusedLoopReportsItsRefusalAlthoughItsInputThrows(\Closure $create): void
    {
        $cancellation = new DeferredCancellation();
        $cancellation->cancel();
        $input = (static function (): \Generator {
            try {
                yield 1;
            } finally {
                throw new \DomainException('end of the input');
            }
        })();
        $input->current(); // only the `finally` block of a started generator runs
        $results = $create()->map($input, abs(...), $cancellation->getCancellation());
        unset($input);
        $failure = self::thrown(\DomainException::class, static fn() => iterator_to_array($results));
        self::assertInstanceOf(CancelledException::class, $failure->getPrevious());
    }

    /** @param \Closure(): Executor $create */
    #[DataProvider('executors')]
    public function testALoopWhoseInputThrowsAtItsEndLeavesNothing(\Closure $create): void
    {
        $executor = $create();
        $input = static function (): \Generator {
            try {
                for (;;) {
                    yield 1;
                }
            } finally {
                throw new \DomainException('end of the input');
            }
        };

        self::assertSame(0, self::collectedAfter(static function () use ($executor, $input): void {
            try {
                foreach ($executor->map($input(), abs(...)) as $value) {
                    break;
                }
                self::fail('The exception of the input is lost');
            } catch (\DomainException) {
            }
        }));
    }

    /** Returns the number of objects that only the garbage collector could free after some rounds. */
    private static function collectedAfter(\Closure $round): int
    {
        $round();
        gc_collect_cycles();
        gc_disable();
        for ($i = 0; $i < self::ROUNDS; ++$i) {
            $round();
            delay(0); // reads of the input that were queued have ended
        }

        return gc_collect_cycles();
    }

    /** @return \Generator<int, Command> */
    private static function commands(): \Generator
    {
        foreach (self::numbers() as $number) {
            yield Command::of('echo', (string) $number);
        }
    }

    /** @return \Generator<int, int> */
    private static function numbers(): \Generator
    {
        for ($number = 1; $number <= 3; ++$number) {
            delay(0);
            yield $number;
        }
    }
}
