<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\After;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\HeldException;
use Spindle\Tests\Conformance\Worker\Task\WakingObject;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerPool;

use function Amp\async;
use function Amp\Future\await;

/**
 * Tests results whose classes run code in the pool's process when they are unserialized.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait RunsCodeOfResults
{
    #[After(1)]
    protected function forgetTheCodeOfResults(): void
    {
        WakingObject::$onWake = null;
    }

    public function testAnObjectMayAwaitATaskOfItsPoolWhileItIsUnserialized(): void
    {
        $pool = $this->pool(workers: 1);
        WakingObject::$onWake = static fn(): mixed
            => $pool->submit(static fn(): int => 7)->await(new TimeoutCancellation(10));

        foreach (self::waysOfAnObject($pool) as $way => $object) {
            self::assertInstanceOf(WakingObject::class, $object, $way);
            self::assertSame(7, $object->result, $way);
        }
        self::assertUsable($pool);
    }

    public function testAnObjectMayKillItsPoolWhileItIsUnserialized(): void
    {
        foreach (['returned', 'mapped', 'yielded', 'returned after items', 'thrown'] as $number => $way) {
            $pool = $this->pool();
            WakingObject::$onWake = static fn() => $pool->kill();
            try {
                foreach (self::waysOfAnObject($pool, $number) as $object) {
                    self::assertInstanceOf(WakingObject::class, $object, $way);
                    break;
                }
            } catch (ExecutorClosedException) {
                // The other task of the way was ended.
            }
            self::thrown(ExecutorClosedException::class, static fn() => $pool->submit('time'));
        }
    }

    /** PHP has one setting for missing classes, which must not apply to other fibers. */
    public function testTheSettingForMissingClassesIsResetWhenAnObjectSuspends(): void
    {
        $pool = $this->pool();
        $entered = new DeferredFuture();
        $continued = new DeferredFuture();
        WakingObject::$onWake = static function () use ($entered, $continued): void {
            if (!$entered->isComplete()) {
                $entered->complete();
            }
            $continued->getFuture()->await();
        };
        $fibers = [
            async(static fn(): array => iterator_to_array($pool->map([1, 2, 3], static fn() => new WakingObject()))),
            async(static fn(): object => $pool->submit(static fn(): object => new WakingObject())->await()),
            async(static fn(): array => iterator_to_array($pool->map([1, 2, 3], static fn() => new WakingObject()))),
        ];
        $entered->getFuture()->await(new TimeoutCancellation(10));
        $during = \ini_get('unserialize_callback_func');
        $object = unserialize('O:7:"Unknown":0:{}');
        $continued->complete();
        await($fibers);

        self::assertSame('', $during);
        self::assertInstanceOf(\__PHP_Incomplete_Class::class, $object);
        self::assertSame('', \ini_get('unserialize_callback_func'));
    }

    /** @return iterable<string, mixed> objects that arrived in the different ways, or only in that of this number */
    private static function waysOfAnObject(WorkerPool $pool, ?int $only = null): iterable
    {
        $ways = [
            'returned' => static fn(): mixed => $pool->submit(static fn(): object => new WakingObject())->await(),
            'mapped' => static fn(): mixed => $pool->map([1], static fn(): object => new WakingObject())->current(),
            'yielded' => static fn(): mixed => self::items($pool, static function (): \Generator {
                yield new WakingObject();
            })->current(),
            'returned after items' => static function () use ($pool): mixed {
                $items = self::items($pool, static function (): \Generator {
                    yield 1;

                    return new WakingObject();
                });
                foreach ($items as $item) {
                    self::assertSame(1, $item);
                }

                return $items->getReturn();
            },
            'thrown' => static function () use ($pool): mixed {
                $failed = self::failure(
                    TaskFailedException::class,
                    $pool->submit(static fn() => throw new HeldException('', new WakingObject())),
                );
                $original = $failed->getPrevious();
                \assert($original instanceof HeldException);

                return $original->held;
            },
        ];
        foreach (array_keys($ways) as $number => $name) {
            if ($only === null || $only === $number) {
                yield $name => $ways[$name]();
            }
        }
    }
}
