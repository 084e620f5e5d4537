<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Throws when it is destroyed, but only in the process that created it. */
final class ThrowingDestructor
{
    private int $maker;

    public function __construct()
    {
        $this->maker = (int) getmypid();
    }

    public function __destruct()
    {
        if ($this->maker === getmypid()) {
            throw new \LogicException('let go');
        }
    }
}
