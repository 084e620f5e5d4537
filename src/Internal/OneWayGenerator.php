<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Functions for generators that yield the results of tasks. A task can't receive a value of Generator::send(). */
final class OneWayGenerator
{
    /**
     * @param mixed $sent result of a `yield`: null unless the reader has called {@see \Generator::send()}
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
     * Yields the generator of a task, or the object that has the generator, and sets the caller's variable to null. PHP
     * still keeps the yielded object when the reader requests the next value. So the caller must next delegate to
     * {@see release()}. As soon as the reader has also dropped the generator, PHP destroys it, and the task ends.
     *
     * @param-out null $result
     *
     * @return \Generator<mixed, mixed>
     */
    public static function yieldOnce(mixed $key, ?object &$result): \Generator
    {
        [$only, $result] = [$result, null];
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
