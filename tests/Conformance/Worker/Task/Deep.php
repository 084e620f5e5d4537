<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Values that are nested deeply. */
final class Deep
{
    /** What is nested in this object. */
    public mixed $next = null;

    /** @return array<mixed> an array in an array in an array …, with this many levels */
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
            $object = new self();
            $object->next = $first;
            $first = $object;
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
