<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Initializes a lazy object of PHP 8.4 or newer. */
final class LazyObject
{
    private function __construct(private readonly object $object) {}

    /**
     * Initializes an object if serialize() would initialize it. Only serialize() itself knows this, because PHP does
     * not report whether an object has the option SKIP_INITIALIZATION_ON_SERIALIZE.
     *
     * @throws \Throwable from the initializer, or because PHP cannot serialize the initialized object
     */
    public static function initialize(object $object): void
    {
        serialize(new self($object));
    }

    /**
     * Calls serialize() in a method that serialize() calls, where PHP separates the tables of repeated objects. Without
     * this, another serialize() would use the table of this one while the initializer suspends its fiber.
     *
     * @return array{}
     */
    public function __serialize(): array
    {
        serialize($this->object);

        return [];
    }
}
