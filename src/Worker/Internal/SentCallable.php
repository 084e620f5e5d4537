<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Serializable form of a first-class callable: its name, and the object or class of a method. */
final class SentCallable
{
    /**
     * @param object|string|null $target object or class; null for a function
     * @param bool $ignoresVisibility true for a private or protected method; false for other callables, and if __call()
     *     or __callStatic() handles the call
     */
    public function __construct(
        public readonly object|string|null $target,
        public readonly string $name,
        public readonly bool $ignoresVisibility,
    ) {}
}
