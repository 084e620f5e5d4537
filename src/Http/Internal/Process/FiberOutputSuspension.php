<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Revolt\EventLoop\Suspension;
use Spindle\Internal\OutputBuffers;

/**
 * Sets the fiber's output buffers aside while the fiber waits.
 *
 * @template T
 *
 * @implements Suspension<T>
 */
final readonly class FiberOutputSuspension implements Suspension
{
    /** @param Suspension<T> $suspension */
    public function __construct(private Suspension $suspension) {}

    public function resume(mixed $value = null): void
    {
        $this->suspension->resume($value);
    }

    public function suspend(): mixed
    {
        return OutputBuffers::keepApartDuring($this->suspension->suspend(...));
    }

    public function throw(\Throwable $throwable): void
    {
        $this->suspension->throw($throwable);
    }
}
