<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * The type of a C array of integers in FFI. No class implements it.
 *
 * @extends \ArrayAccess<int, int>
 */
interface Integers extends \ArrayAccess
{
    public function offsetGet(mixed $offset): int;
}
