<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** An object whose methods are tasks, and which may hold a value. */
class Number
{
    public mixed $held = null;

    public function __construct(private int $value = 0) {}

    public function __invoke(int $plus = 0): int
    {
        return $this->value + $plus;
    }

    /** @param array<mixed> $arguments */
    public function __call(string $name, array $arguments): string
    {
        return "{$name} of {$this->value}";
    }

    /** @param array<mixed> $arguments */
    public static function __callStatic(string $name, array $arguments): string
    {
        return "{$name} of none";
    }

    public static function answer(): int
    {
        return 42;
    }

    public static function double(int $number): int
    {
        return 2 * $number;
    }

    public static function holding(mixed $held): self
    {
        $number = new self();
        $number->held = $held;

        return $number;
    }

    public function value(): int
    {
        return $this->value;
    }

    public function increment(): int
    {
        return ++$this->value;
    }

    public function hidden(): \Closure
    {
        return $this->secretly(...);
    }

    /** Returns a closure that uses its object. */
    public function bound(): \Closure
    {
        return fn(): int => $this->value;
    }

    /** Returns a closure that has its object, and does not use it. */
    public function unused(): \Closure
    {
        // @codingStandardsIgnoreLine (not static, which is the point)
        return fn(): int => 7;
    }

    /** Returns a static closure that calls a private method of its class. */
    public static function scoped(): \Closure
    {
        return static fn(): string => self::privately();
    }

    private static function privately(): string
    {
        return 'private ' . static::class;
    }

    private function secretly(): int
    {
        return -$this->value;
    }
}
