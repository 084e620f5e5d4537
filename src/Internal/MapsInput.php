<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Amp\Cancellation;

/** Methods of an executor that run a task for each value of an input. They differ in order and handling of failures. */
trait MapsInput
{
    public function map(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return $this->results($input, $task, $cancellation, inOrder: true, keepsFailures: false);
    }

    public function mapUnordered(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return $this->results($input, $task, $cancellation, inOrder: false, keepsFailures: false);
    }

    public function mapOutcomes(iterable $input, callable $task, ?Cancellation $cancellation = null): \Generator
    {
        return $this->results($input, $task, $cancellation, inOrder: true, keepsFailures: true);
    }

    public function mapOutcomesUnordered(
        iterable $input,
        callable $task,
        ?Cancellation $cancellation = null,
    ): \Generator {
        return $this->results($input, $task, $cancellation, inOrder: false, keepsFailures: true);
    }

    /**
     * @param iterable<mixed, mixed> $input
     * @param bool $keepsFailures whether to yield a MapOutcome for each task, and to continue after failed tasks
     *
     * @return \Generator<mixed, mixed>
     */
    abstract private function results(
        iterable $input,
        callable $task,
        ?Cancellation $cancellation,
        bool $inOrder,
        bool $keepsFailures,
    ): \Generator;
}
