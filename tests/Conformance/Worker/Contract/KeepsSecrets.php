<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\Dump;
use Spindle\Worker\Internal\WorkerListener;
use Spindle\Worker\Internal\WorkerSettings;

/**
 * Tests that a task cannot print the secrets of its pool, which open its socket and sign closures.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait KeepsSecrets
{
    public function testNothingThatATaskCanPrintHasASecretOfThePoolInIt(): void
    {
        $pool = $this->pool(1, initialize: static fn(): bool => true);
        $dump = $pool->submit(Dump::everything(...))->await();
        $secrets = [
            self::within($pool, WorkerSettings::class)->key,
            self::within($pool, WorkerListener::class)->secret,
        ];

        self::assertStringContainsString('TaskContext', $dump);
        foreach ($secrets as $secret) {
            self::assertSame(32, \strlen($secret));
            self::assertFalse(str_contains($dump, $secret), 'as it is');
            self::assertFalse(str_contains($dump, substr(var_export($secret, true), 1, -1)), 'as code');
        }
    }

    /**
     * Returns the object of a class that an object holds, directly or through other objects.
     *
     * @template T of object
     *
     * @param class-string<T> $class
     *
     * @return T
     */
    private static function within(object $holder, string $class): object
    {
        $seen = new \SplObjectStorage();
        for ($waiting = [$holder]; $waiting !== [];) {
            $object = array_shift($waiting);
            if ($object instanceof $class) {
                return $object;
            }
            if (!isset($seen[$object])) {
                $seen[$object] = true;
                $parts = array_map(
                    static fn(mixed $part): array => \is_array($part) ? array_values($part) : [$part],
                    array_values((array) $object),
                );
                array_push($waiting, ...array_filter(array_merge(...$parts), is_object(...)));
            }
        }
        self::fail("No {$class} is in it");
    }
}
