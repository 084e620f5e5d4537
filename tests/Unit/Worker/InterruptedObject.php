<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** An object whose serialization is interrupted by an exception, as by one of a signal handler. */
final class InterruptedObject
{
    private int $calls = 0;

    /** @param list<int> $interrupted numbers of the calls that are interrupted, from 1 */
    public function __construct(private readonly array $interrupted) {}

    /** @return array{} */
    public function __serialize(): array
    {
        return \in_array(++$this->calls, $this->interrupted, true) ? throw new \OverflowException() : [];
    }
}
