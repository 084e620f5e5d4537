<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\UnserializableException;

/** Tests first-class callables that closures have captured. */
final class CapturedCallablesTest extends TestCase
{
    private const KEY = 'a key';

    /** @return iterable<string, array{\Closure(): mixed, mixed}> */
    public static function closures(): iterable
    {
        $function = strtoupper(...);
        $static = ChildClass::called(...);
        $method = (new CallableCounter())->count(...);
        $hidden = (new CallableCounter())->hidden();
        $parts = ['one' => [$function], 'other' => ['method' => $method]];
        $inner = static fn(): string => $function('c');
        yield 'a function' => [static fn(): string => $function('a'), 'A'];
        yield 'a static method' => [static fn(): string => $static(), ChildClass::class];
        yield 'a method of an object' => [static fn(): array => [$method(), $method()], [1, 2]];
        yield 'a private method' => [static fn(): int => $hidden(), -1];
        yield 'parts' => [static fn(): array => [$parts['one'][0]('b'), $parts['other']['method']()], ['B', 1]];
        yield 'in another closure' => [static fn(): string => $inner(), 'C'];
        yield 'in a generator' => [static function () use ($function): array {
            return iterator_to_array((static function () use ($function): \Generator {
                yield $function('d');
            })());
        }, ['D']];
    }

    /** @param \Closure(): mixed $closure */
    #[DataProvider('closures')]
    public function testCapturedCallablesBehaveTheSameAfterDecoding(\Closure $closure, mixed $result): void
    {
        self::assertSame($result, self::sent($closure)());
    }

    public function testAMethodKeepsItsObject(): void
    {
        $counter = new CallableCounter();
        $counter->owned = ['its own' => $counter];
        $count = $counter->count(...);
        $again = $counter->count(...);

        $sent = self::sent(
            static fn(): array => [$count(), $again(), $counter->counted, $counter->owned['its own'] === $counter],
        );

        self::assertSame([1, 2, 2, true], $sent());
        self::assertSame(0, $counter->counted);
    }

    public function testAResourceOfItsObjectIsRefused(): void
    {
        $count = (new CallableCounter(fopen('php://memory', 'r')))->count(...);

        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessage("The task's captured variable \$count's \$this->owned is an open stream");
        self::sent(static fn(): int => $count());
    }

    private static function sent(\Closure $closure): \Closure
    {
        return TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY);
    }
}
