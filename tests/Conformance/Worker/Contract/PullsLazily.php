<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\DeferredFuture;
use Spindle\Tests\Conformance\Worker\Collected;
use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Eventually;
use Spindle\Tests\Scale;

/**
 * Tests how far ahead the input is read.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait PullsLazily
{
    /** Largest number of values read ahead of the caller's loop, for small values; and for values of one megabyte. */
    private const FAR_AHEAD = 40_000;
    private const LARGE_AHEAD = 24;

    public function testNoInputIsReadBeforeTheFirstResultIsRequested(): void
    {
        $pulled = 0;
        $input = static function () use (&$pulled): \Generator {
            ++$pulled;
            yield 3;
        };
        $results = $this->executor()->map($input(), Number::double(...));

        self::assertSame(0, $pulled);
        self::assertSame([6], iterator_to_array($results));
    }

    public function testAnEndlessInputIsPulledABoundedNumberAhead(): void
    {
        $executor = $this->executor();
        $count = Scale::isFull() ? 20_000 : 8_000;
        foreach (['map', 'mapUnordered'] as $verb) {
            $pulled = $taken = $ahead = 0;
            $input = static function () use (&$pulled): \Generator {
                while (true) {
                    yield ++$pulled;
                }
            };
            foreach (self::loop($executor, $verb, $input(), Number::double(...)) as $_) {
                $ahead = max($ahead, $pulled - ++$taken);
                if ($taken === $count) {
                    break;
                }
            }
            self::assertSame($count, $taken);
            self::assertLessThanOrEqual(self::FAR_AHEAD, $ahead);
        }
        self::assertUsable($executor);
    }

    public function testLargeValuesArePulledFewAhead(): void
    {
        $pulled = $taken = 0;
        $input = static function () use (&$pulled): \Generator {
            while (true) {
                ++$pulled;
                yield str_repeat('x', 1 << 20);
            }
        };
        foreach ($this->executor()->map($input(), strlen(...)) as $size) {
            ++$taken;
            self::assertSame(1 << 20, $size);
            self::assertLessThanOrEqual($taken + self::LARGE_AHEAD, $pulled);
            if ($taken === 60) {
                break;
            }
        }
        self::assertSame(60, $taken);
    }

    public function testLargeResultsAreKeptFewAhead(): void
    {
        $pulled = $taken = 0;
        $input = static function () use (&$pulled): \Generator {
            while (true) {
                yield ++$pulled;
            }
        };
        memory_reset_peak_usage();
        $before = memory_get_usage();
        foreach ($this->executor()->mapUnordered(
            $input(),
            static fn(int $i): string => str_repeat('x', 1 << 20),
        ) as $text) {
            ++$taken;
            self::assertSame(1 << 20, \strlen($text));
            if ($taken === 200) {
                break;
            }
        }
        self::assertSame(200, $taken);
        self::assertLessThan(120 << 20, memory_get_peak_usage() - $before, 'bytes for 200 MiB of results');
    }

    public function testAnInputThatSuspendsDelaysNoResult(): void
    {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $more = new DeferredFuture();
            $input = static function () use ($more): \Generator {
                yield 'first' => 1;
                yield 'second' => 2;
                $more->getFuture()->await(); // until both results have arrived
                yield 'third' => 3;
            };
            $keys = [];
            foreach (self::loop($executor, $verb, $input(), Number::double(...)) as $key => $_) {
                $keys[] = $key;
                if (\count($keys) === 2) {
                    $more->complete();
                }
            }
            sort($keys);

            self::assertSame(['first', 'second', 'third'], $keys);
        }
    }

    public function testAnInputMayUseTheExecutorItself(): void
    {
        $executor = $this->executor();
        $input = static function () use ($executor): \Generator {
            yield $executor->submit(Number::answer(...))->await();
            yield from $executor->map([1, 2], Number::double(...));
        };

        self::assertSame([84, 4, 8], iterator_to_array($executor->map($input(), Number::double(...)), false));
    }

    public function testTheResultsBeforeTheInputThrowsComeFirst(): void
    {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $input = static function (): \Generator {
                for ($i = 0; $i < 50; ++$i) {
                    yield $i;
                }
                throw new \DomainException('torn');
            };
            $results = new Collected(self::loop($executor, $verb, $input(), Number::double(...)));
            $values = $results->values;
            sort($values);

            self::assertSame(range(0, 98, 2), $values);
            self::assertInstanceOf(\DomainException::class, $results->thrown);
            self::assertSame('torn', $results->thrown->getMessage());
        }
        self::assertUsable($executor);
    }

    public function testAnInputThatThrowsAtOnceFailsTheMap(): void
    {
        $executor = $this->executor();
        $input = static function (): \Generator {
            yield from [];
            throw new \DomainException('torn');
        };

        self::assertInstanceOf(\DomainException::class, (new Collected($executor->map($input(), 'abs')))->thrown);
        self::assertUsable($executor);
    }

    public function testAnInputIsLeftWhenTheLoopIs(): void
    {
        $left = false;
        $input = static function () use (&$left): \Generator {
            try {
                for ($i = 0; true; ++$i) {
                    yield $i;
                }
            } finally {
                $left = true;
            }
        };
        $values = $input();
        $results = $this->executor()->map($values, Number::double(...));
        unset($values);
        foreach ($results as $_) {
            break;
        }
        unset($results);

        Eventually::holds(static function () use (&$left): bool {
            gc_collect_cycles();

            return $left;
        }, 'the input is left');
    }
}
