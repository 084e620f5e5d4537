<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Future;
use Spindle\Lifecycle;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\Executor;
use Spindle\Worker\ExecutorClosedException;

/** The contract for an executor. Its work is a task that waits at a gate. */
abstract class ExecutorLifecycleContract extends LifecycleContract
{
    use EndsInTime;
    use OwnDirectory;

    private ?Gate $gate = null;

    protected function begin(Lifecycle $object): Future
    {
        $gate = $this->gate = new Gate($this->path('gate'));
        $work = self::executor($object)->submit(static fn(): bool => $gate->pass(ends: true) === 'task');
        $gate->awaitTasks(1);

        return $work;
    }

    protected function finish(): void
    {
        $this->gate?->open();
    }

    protected function giveMore(Lifecycle $object): void
    {
        self::executor($object)->submit('time');
    }

    protected function refusal(): string
    {
        return ExecutorClosedException::class;
    }

    private static function executor(Lifecycle $object): Executor
    {
        return $object instanceof Executor ? $object : self::fail('Not an executor');
    }
}
