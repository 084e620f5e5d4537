<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * An array of integers in C, as FFI shows it. Nothing implements it: it is its type.
 *
 * @extends \ArrayAccess<int, int>
 */
interface Integers extends \ArrayAccess
{
    public function offsetGet(mixed $offset): int;
}
