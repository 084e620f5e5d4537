<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Worker\UnserializableException;

use function Amp\delay;

/** Inputs that fail, and values that can't travel. */
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
                    foreach ($map(self::failingAfter($count, $suspends), Deeds::square(...)) as $key => $result) {
                        $results[$key] = $result;
                    }
                } catch (\DomainException $thrown) {
                }
                ksort($results);

                self::assertSame('the input ends here', $thrown?->getMessage());
                self::assertSame($count === 0 ? [] : array_map(Deeds::square(...), range(0, $count - 1)), $results);
            }
        }
        self::assertUsable($pool);
    }

    public function testAValueThatCanNotTravelEndsTheMapAfterTheResultsOfThoseBeforeIt(): void
    {
        $pool = $this->pool(2);
        $input = array_fill(0, 100, 2);
        $input['bad'] = static fn(): int => 1;
        $input['behind'] = 3;
        $results = [];
        $thrown = null;
        try {
            foreach ($pool->map($input, Deeds::same(...)) as $result) {
                $results[] = $result;
            }
        } catch (UnserializableException $thrown) {
        }

        self::assertStringContainsString('"bad"', (string) $thrown?->getMessage());
        self::assertSame(array_fill(0, 100, 2), $results);
        self::assertUsable($pool);
    }

    public function testOfAHundredTasksAmongAHundredThatCanNotBeSentEachHasItsOutcome(): void
    {
        $pool = $this->pool(2);
        $futures = [];
        $refused = 0;
        for ($i = 0; $i < 200; ++$i) {
            try {
                $futures[] = $pool->submit($i % 2 === 0 ? new Call('square', $i) : new Call('square', static fn(): int => 1));
            } catch (UnserializableException) {
                ++$refused;
            }
        }

        self::assertSame(100, $refused);
        self::assertSame(array_map(static fn(int $i): int => 4 * $i * $i, range(0, 99)), self::outcomes($futures));
        self::assertUsable($pool);
    }

    public function testOfAHundredResultsAmongAHundredThatCanNotBeSentEachHasItsOutcome(): void
    {
        $pool = $this->pool(2);
        $futures = array_map(
            static fn(int $i): Future => $pool->submit($i % 2 === 0 ? new Call('square', $i) : new Call('unserializable', $i % 4 === 1)),
            range(0, 199),
        );

        foreach (self::outcomes($futures) as $i => $outcome) {
            if ($i % 2 === 0) {
                self::assertSame($i * $i, $outcome);
            } else {
                self::assertInstanceOf(UnserializableException::class, $outcome);
                self::assertSame(['The result', $i % 4 === 1 ? 'a closure' : 'an open stream'], [$outcome->path, $outcome->what]);
            }
        }
        self::assertUsable($pool);
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
