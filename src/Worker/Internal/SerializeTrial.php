<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Calls serialize() for an object that may suspend its fiber in Serializable::serialize() or while it is initialized.
 * Then PHP would add the objects of other calls to the table in which it looks up repeated objects. Those calls would
 * return wrong numbers. In a method that serialize() calls, such as __serialize(), each call has a separate table.
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
