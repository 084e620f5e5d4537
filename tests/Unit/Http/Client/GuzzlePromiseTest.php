<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use GuzzleHttp\Promise\CancellationException;
use GuzzleHttp\Promise\Create;
use GuzzleHttp\Promise\Each;
use GuzzleHttp\Promise\Promise;
use GuzzleHttp\Promise\PromiseInterface;
use GuzzleHttp\Promise\Utils;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Http\Internal\Client\GuzzlePromise;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;

use function Amp\delay;
use function Amp\Future\await;

final class GuzzlePromiseTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;

    public function testAPromiseOfThenWaitsForACallbackThatSuspends(): void
    {
        $promise = self::later(1)->then(self::addOne(...))->then(self::addOne(...));

        self::assertSame(3, $promise->wait());
    }

    public function testCallbacksThatSuspendRejectWithWhatTheyThrow(): void
    {
        $failing = self::later(1)->then(static function (): void {
            delay(0);

            throw new \RuntimeException('refused');
        });

        self::assertSame('refused', self::thrown(\RuntimeException::class, $failing->wait(...))->getMessage());
        self::assertSame('refused', $failing->otherwise(self::message(...))->wait());
    }

    /** @param \Closure(list<PromiseInterface>, \Closure(mixed): int): PromiseInterface $combine */
    #[DataProvider('combinations')]
    public function testCallbacksOfGuzzlesCombinationsMaySuspend(\Closure $combine): void
    {
        $run = static function () use ($combine): array {
            $seen = [];
            $callback = static function (mixed $value) use (&$seen): int {
                return $seen[] = self::addOne($value);
            };
            $combine([self::later(1), self::later(3), self::later(5)], $callback)->wait();
            sort($seen);

            return $seen;
        };

        self::assertSame([[2, 4, 6], [2, 4, 6]], await([Async::run($run), Async::run($run)]));
    }

    /** @return iterable<string, array{\Closure(list<PromiseInterface>, \Closure(mixed): int): PromiseInterface}> */
    public static function combinations(): iterable
    {
        yield 'Each' => [Each::of(...)];
        yield 'Each with a limit' => [
            static fn(array $promises, \Closure $callback) => Each::ofLimit($promises, 2, $callback),
        ];
        yield 'Utils::all' => [static function (array $promises, \Closure $callback): PromiseInterface {
            /** @var list<PromiseInterface> $promises */
            return Utils::all(array_map(
                static fn(PromiseInterface $promise): PromiseInterface => $promise->then($callback),
                $promises,
            ));
        }];
        yield 'a callback of Utils::all' => [static function (array $promises, \Closure $callback): PromiseInterface {
            /** @var list<PromiseInterface> $promises */
            return Utils::all($promises)->then(static fn(array $values) => array_map($callback, $values));
        }];
    }

    public function testSeveralFibersCanWaitForOnePromise(): void
    {
        $promise = self::later(1);
        $next = $promise->then(self::addOne(...));

        self::assertSame(
            [1, 1, 2, 2],
            self::results([$promise, $promise, $next, $next]),
        );
    }

    public function testTheEndOfAWaitFollowsTheCallbacks(): void
    {
        $promise = self::later(1);
        $seen = [];
        $promise->then(self::addOne(...))->then(static function (mixed $value) use (&$seen): void {
            $seen[] = $value;
        });
        $promise->wait();

        self::assertSame([2], $seen);
    }

    public function testACallbackCanWaitForThePromiseOfAnother(): void
    {
        $promise = self::later(1);
        /** @var \ArrayObject<int, PromiseInterface> $promises */
        $promises = new \ArrayObject();
        $promises[] = $promise->then(static fn(): mixed => $promises[1]?->wait());
        $promises[] = $promise->then(self::addOne(...));

        self::assertSame(2, $promises[0]?->wait());
    }

    public function testACallbackOfASettledPromiseIsCalledWithoutAWait(): void
    {
        $promise = self::later(1);
        $promise->wait();
        /** @var \ArrayObject<int, mixed> $seen */
        $seen = new \ArrayObject();
        $promise->then($seen->append(...));

        self::assertCount(0, $seen);
        EventLoop::run();
        self::assertSame([1], $seen->getArrayCopy());
    }

    /** @param \Closure(): mixed $value of a callback */
    #[DataProvider('values')]
    public function testAPromiseFollowsThePromiseThatItsCallbackReturns(\Closure $value): void
    {
        $next = self::later(1)->then($value);
        $last = $next->then(self::addOne(...));

        self::assertSame([5, 6, 6], self::results([$next, $last, $last]));
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function values(): iterable
    {
        yield 'pending' => [static fn() => self::later(5)];
        yield 'fulfilled' => [static fn() => Create::promiseFor(5)];
        yield 'settled' => [static function (): PromiseInterface {
            $promise = self::later(5);
            $promise->wait();

            return $promise;
        }];
        yield 'settles when waited for' => [static function (): PromiseInterface {
            return $promise = new Promise(static function () use (&$promise): void {
                \assert($promise instanceof Promise);
                $promise->resolve(self::addOne(4));
            });
        }];
        yield 'of a combination' => [static fn() => Utils::all([self::later(4)])->then(
            static fn(): int => self::addOne(4),
        )];
    }

    /** @param \Closure(): mixed $value of a callback */
    #[DataProvider('values')]
    public function testAPromiseOfGuzzleFollowsThePromiseThatItsCallbackReturns(\Closure $value): void
    {
        self::assertSame(6, Utils::all([self::later(1)])->then($value)->then(self::addOne(...))->wait());
    }

    public function testARejectionIsPassedOn(): void
    {
        $next = self::later(1)->then(static fn() => Create::rejectionFor(new \RuntimeException('refused')));

        self::assertSame('refused', $next->then(self::addOne(...))->otherwise(self::message(...))->wait());
        self::assertSame(PromiseInterface::REJECTED, $next->getState());
    }

    public function testCancelEndsTheFirstPromiseAndRejectsAll(): void
    {
        $cancelled = 0;
        $promise = new GuzzlePromise(static function () use (&$cancelled): void {
            ++$cancelled;
        });
        $next = $promise->then(self::addOne(...));
        $other = $promise->otherwise(static fn(mixed $thrown): string => self::addOne(1) . get_debug_type($thrown));
        $next->cancel();
        $next->cancel();

        self::assertSame([1, 'rejected', 'rejected'], [$cancelled, $promise->getState(), $next->getState()]);
        self::assertSame('2' . CancellationException::class, $other->wait());
        self::thrown(CancellationException::class, $next->wait(...));
    }

    public function testASettledPromiseKeepsItsResult(): void
    {
        $promise = new GuzzlePromise(null);
        $promise->resolve(1);
        $promise->cancel();

        self::thrown(\LogicException::class, static fn() => $promise->resolve(2));
        self::thrown(\LogicException::class, static fn() => $promise->reject(new \RuntimeException()));
        self::assertSame(1, $promise->wait());
    }

    public function testAPromiseCannotBeItsOwnValue(): void
    {
        $promise = self::later(1)->then(static function () use (&$promise): mixed {
            return $promise;
        });

        self::thrown(\LogicException::class, $promise->wait(...));
    }

    /**
     * Waits for each promise in another fiber.
     *
     * @param list<PromiseInterface> $promises
     *
     * @return array<int, mixed>
     */
    private static function results(array $promises): array
    {
        $results = await(array_map(static fn(PromiseInterface $one) => Async::run($one->wait(...)), $promises));
        ksort($results);

        return $results;
    }

    private static function later(int $value): GuzzlePromise
    {
        $promise = new GuzzlePromise(null);
        Async::run(static fn() => $promise->resolve($value));

        return $promise;
    }

    private static function message(mixed $thrown): string
    {
        return Create::exceptionFor($thrown)->getMessage();
    }

    private static function addOne(mixed $value): int
    {
        \assert(\is_int($value));
        delay(0);

        return $value + 1;
    }
}
