<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** A level of a deeply nested value. */
class Deep
{
    /** @param mixed $next value in this object */
    final public function __construct(public mixed $next = null) {}

    public function count(): int
    {
        return self::levels($this->next);
    }

    /** @return array<mixed> nested arrays with this many levels */
    public static function arrays(int $levels): array
    {
        $array = [];
        while (--$levels > 0) {
            $array = [$array];
        }

        return $array;
    }

    /** Returns a linked list with this many objects. */
    public static function objects(int $levels): self
    {
        $first = new self();
        while (--$levels > 0) {
            $first = new self($first);
        }

        return $first;
    }

    /** Returns the same with objects of a class that serializes them itself. */
    public static function hiddenObjects(int $levels): HiddenDeep
    {
        $first = new HiddenDeep();
        while (--$levels > 0) {
            $first = new HiddenDeep($first);
        }

        return $first;
    }

    public static function levels(mixed $value): int
    {
        $levels = 0;
        while (\is_array($value) || $value instanceof self) {
            ++$levels;
            $value = \is_array($value) ? $value[0] ?? null : $value->next;
        }

        return $levels;
    }
}
