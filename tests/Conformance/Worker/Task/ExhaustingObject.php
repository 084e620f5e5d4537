<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Allocates more memory than the limit when it is unserialized. */
final class ExhaustingObject
{
    public int $size = 0;

    /** @return array{} */
    public function __serialize(): array
    {
        return [];
    }

    /** @param array{} $data */
    public function __unserialize(array $data): void
    {
        $this->size = WorkerTasks::exhaust();
    }
}
