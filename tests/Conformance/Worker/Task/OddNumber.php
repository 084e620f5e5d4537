<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** A class that inherits methods that are tasks. */
final class OddNumber extends Number
{
    public function value(): int
    {
        return parent::value() | 1;
    }
}
