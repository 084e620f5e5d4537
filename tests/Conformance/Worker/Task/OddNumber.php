<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Inherits the methods that are tasks. */
final class OddNumber extends Number
{
    public function value(): int
    {
        return parent::value() | 1;
    }
}
