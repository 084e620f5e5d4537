<?php

declare(strict_types=1);

/**
 * Suspends the serialization of a value and unserialize() of another one, and ends them, in each order. Then prints
 * "done". The first argument is the kind of the value.
 */

use Spindle\Tests\Unit\Worker\SuspendingSerializable;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\UnserializableException;

error_reporting(\E_ALL & ~\E_DEPRECATED);
require dirname(__DIR__, 3) . '/vendor/autoload.php';

function suspend(): void
{
    Suspended::add(Fiber::getCurrent());
    Fiber::suspend();
}

final class Suspended
{
    /** @var list<Fiber<mixed, mixed, mixed, mixed>> */
    public static array $fibers = [];

    /** @param Fiber<mixed, mixed, mixed, mixed>|null $fiber */
    public static function add(?Fiber $fiber): void
    {
        self::$fibers[] = $fiber ?? throw new LogicException('No fiber');
    }

    public static function resume(int $index): void
    {
        self::$fibers[$index]->resume();
    }

    /** @param array<mixed> $data */
    public function __unserialize(array $data): void
    {
        suspend();
    }
}

final class Suspends
{
    private int $calls = 0;

    public function __construct(private readonly int $call) {}

    /** @return array{} */
    public function __serialize(): array
    {
        if (++$this->calls === $this->call) {
            suspend();
        }

        return [];
    }
}

final class Lazy
{
    public int $id = 1;
}

final class SerializesInside
{
    public function __construct(private readonly object $held) {}

    /** @return array{string} */
    public function __serialize(): array
    {
        return [serialize($this->held)];
    }
}

/** @return object suspends its fiber when it is serialized */
function create(mixed $kind): object
{
    // @phpstan-ignore return.type (before PHP 8.4)
    return match ($kind) {
        'Serializable' => new SuspendingSerializable(),
        'nested' => new SerializesInside(new Suspends(1)),
        'second call' => new Suspends(2),
        // @phpstan-ignore method.notFound (PHP 8.4)
        'lazy' => (new ReflectionClass(Lazy::class))->newLazyGhost(suspend(...)),
        default => throw new LogicException('No such kind'),
    };
}

$serialize = static function () use ($argv): void {
    $value = create($argv[1] ?? null);
    try {
        (new Fiber(static fn(): string => ValueSerializer::serialize([$value], '$value')))->start();
        exit('The value was accepted');
    } catch (UnserializableException) {
        if ($value instanceof SuspendingSerializable) {
            Suspended::add($value->fiber);
        }
    }
};
$unserialize = static function (): void {
    (new Fiber(static fn(): mixed => unserialize('a:1:{i:0;O:9:"Suspended":0:{}}')))->start();
};
$item = new ArrayObject([1]);
$expected = serialize([$item, $item]);
foreach ([[$serialize, $unserialize], [$unserialize, $serialize]] as $calls) {
    foreach ([[0, 1], [1, 0]] as $order) {
        Suspended::$fibers = [];
        foreach ($calls as $call) {
            $call();
        }
        foreach ($order as $i) {
            Suspended::resume($i);
            if (serialize([$item, $item]) !== $expected || serialize(unserialize($expected)) !== $expected) {
                exit('Another value has changed');
            }
        }
    }
}
echo 'done';
