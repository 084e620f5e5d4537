<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Functions for generators that yield the results of tasks. A task can't receive a value of Generator::send(). */
final class OneWayGenerator
{
    /**
     * @param mixed $sent value of a `yield`: null unless the reader has called {@see \Generator::send()}
     *
     * @throws \LogicException when the value is not null
     */
    public static function refuse(mixed $sent): void
    {
        if ($sent !== null) {
            throw new \LogicException(
                'A value was sent to the result of a generator task, and the task cannot receive it. Read the result'
                . ' with foreach',
            );
        }
    }

    /**
     * Yields `$items`, the generator of a task, and keeps no reference to `$items`. But PHP keeps the yielded value.
     * When the reader requests the next value, this method ends. The caller must then delegate to {@see release()}, so
     * that PHP drops `$items`. As soon as the reader has also dropped `$items`, PHP destroys it, and the task ends.
     *
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     *
     * @param-out null $items
     *
     * @return \Generator<mixed, mixed>
     */
    public static function yieldOnce(mixed $key, ?\Generator &$items): \Generator
    {
        [$only, $items] = [$items, null];
        yield $key => $only;
    }

    /**
     * Releases the value that a generator yielded last: `yield from OneWayGenerator::release()`.
     * PHP keeps that value until the generator yields again, ends or delegates to another generator. Delegating
     * to an array (`yield from []`) is not enough.
     *
     * @return \Generator<never, never>
     */
    public static function release(): \Generator
    {
        yield from [];
    }
}
