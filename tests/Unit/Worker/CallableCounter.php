<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

final class CallableCounter
{
    public int $counted = 0;

    public function __construct(public mixed $owned = null) {}

    public function count(): int
    {
        return ++$this->counted;
    }

    /** @return \Closure(): int */
    public function hidden(): \Closure
    {
        return $this->negative(...);
    }

    private function negative(): int
    {
        return -$this->counted - 1;
    }
}
