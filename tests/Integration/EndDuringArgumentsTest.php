<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration;

use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\CommandPool;
use Spindle\Postgres\PostgresPool;
use Spindle\Tests\Host;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\WorkerPool;

use function Amp\async;
use function Amp\delay;

/** A script ends while a fiber waits for an argument of a constructor. The object exists, but has no properties. */
final class EndDuringArgumentsTest extends TidyTestCase
{
    /** @param class-string $class */
    #[TestWith([CommandPool::class])]
    #[TestWith([PostgresPool::class])]
    #[TestWith([ResultBudget::class])]
    #[TestWith([WorkerPool::class])]
    public function testTheDestructorDoesNothing(string $class): void
    {
        self::assertTrue(Host::call(self::class . '::end', [$class]));
    }

    /** @param class-string $class */
    public static function end(string $class): bool
    {
        // PHP reuses the handles of these older objects, and destroys objects in the order of their handles.
        $objects = array_map(static fn(): \stdClass => new \stdClass(), range(1, 50));
        $isWaiting = false;
        async(static function () use ($class, &$objects, &$isWaiting): void {
            class_exists($class);
            $objects = [];
            $isWaiting = true;
            new $class((new DeferredFuture())->getFuture()->await());
        })->ignore();
        delay(0);

        return $isWaiting;
    }
}
