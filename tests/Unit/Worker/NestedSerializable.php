<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Calls serialize() and unserialize() in the methods of the old interface for serialization. */
// @phpstan-ignore class.serializable, class.serializable (the deprecated interface is still supported)
final class NestedSerializable implements \Serializable
{
    /** @var \Closure(): void|null called before the object is restored */
    public static ?\Closure $onUnserialize = null;

    public function __construct(public mixed $held) {}

    public function serialize(): string
    {
        return serialize($this->held);
    }

    public function unserialize(string $data): void
    {
        if (self::$onUnserialize !== null) {
            (self::$onUnserialize)();
        }
        $this->held = unserialize($data);
    }
}
