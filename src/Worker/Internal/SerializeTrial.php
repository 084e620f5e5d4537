<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Calls serialize() for an object that may suspend its fiber in Serializable::serialize() or while it is initialized.
 * While serialize() is suspended, calls in other fibers would share its table of repeated objects, and return wrong
 * references. A call inside of __serialize() has a separate table.
 */
final class SerializeTrial
{
    private function __construct(private readonly object $object) {}

    /** @throws \Throwable when serialize() fails */
    public static function run(object $object): void
    {
        serialize(new self($object));
    }

    /** @return array{} */
    public function __serialize(): array
    {
        serialize($this->object);

        return [];
    }
}
