<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Serializable form of a first-class callable: its name. */
final class SentCallable
{
    /** @param object|string|null $target object or class of a method; null for a function */
    public function __construct(
        public readonly object|string|null $target,
        public readonly string $name,
    ) {}
}
