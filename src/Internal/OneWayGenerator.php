<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Functions for generators that pass on items of another generator or a process, and refuse values from send(). */
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
     * Yields the generator of a task without keeping a reference to that generator. So when the reader drops the
     * generator, PHP destroys it, and the task ends. But PHP keeps a yielded value until the reader requests the next
     * one. This method ends at that request. The caller must then delegate to {@see release()}, which frees the value.
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
