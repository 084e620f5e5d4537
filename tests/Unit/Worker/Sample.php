<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Methods and objects that can be tasks, and some that cannot. */
final class Sample
{
    public mixed $held = null;

    public function __construct(private readonly int $factor = 2) {}

    public function __invoke(int $number): int
    {
        return $number * $this->factor;
    }

    public static function double(int $number): int
    {
        return $number * 2;
    }

    public function privately(): \Closure
    {
        return $this->times(...);
    }

    public function bound(): \Closure
    {
        return fn(int $number): int => $number * $this->factor;
    }

    private function times(int $number): int
    {
        return $number * $this->factor;
    }
}
