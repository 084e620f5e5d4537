<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * A task of {@see TaskGroup}, with the callbacks for its outcome.
 *
 * @template-covariant T type of the task's result
 */
final class Task
{
    /** @var list<callable(T): mixed> */
    private array $then = [];

    /** @var list<callable(\Throwable): mixed> */
    private array $catch = [];

    private bool $settled = false;

    /**
     * @internal
     *
     * @param callable(): T $task
     */
    public function __construct(private readonly TaskGroup $tasks, public readonly mixed $task) {}

    /**
     * Adds a callback for the task's result. Callbacks run in the order in which they were added. If a callback throws,
     * the later callbacks do not run.
     *
     * @param callable(T): mixed $callback
     *
     * @return $this
     *
     * @throws \LogicException when the callbacks have started
     */
    public function then(callable $callback): self
    {
        $this->requireNotSettled();
        $this->then[] = $callback;

        return $this;
    }

    /**
     * Adds a callback for the task's failure: usually a {@see TaskException}, or an exception of a then() callback.
     * Each callback gets the failure, unless an earlier catch() callback throws.
     *
     * @param callable(\Throwable): mixed $callback
     *
     * @return $this
     *
     * @throws \LogicException when the callbacks have started
     */
    public function catch(callable $callback): self
    {
        $this->requireNotSettled();
        $this->catch[] = $callback;

        return $this;
    }

    /**
     * Adds another task to the same {@see TaskGroup}, so that calls can be chained.
     *
     * @template TOther
     *
     * @param callable(): TOther $task
     *
     * @return self<TOther>
     */
    public function add(callable $task): self
    {
        return $this->tasks->add($task);
    }

    /**
     * Runs all tasks of the same {@see TaskGroup}, as {@see TaskGroup::wait()} does.
     *
     * @throws CancelledException
     * @throws \LogicException    when the tasks are running already
     * @throws \Throwable         the first failure that no catch() callback handled
     */
    public function wait(?Cancellation $cancellation = null): void
    {
        $this->tasks->wait($cancellation);
    }

    /**
     * @internal
     *
     * @throws \Throwable a failure that no catch() callback handled
     */
    public function settle(mixed $result, ?\Throwable $failure): void
    {
        $this->settled = true;
        if ($failure === null) {
            try {
                foreach ($this->then as $then) {
                    $then($result);
                }

                return;
            } catch (\Throwable $thrown) {
                $failure = $thrown;
            }
        }
        if ($this->catch === []) {
            throw $failure;
        }
        foreach ($this->catch as $catch) {
            $catch($failure);
        }
    }

    private function requireNotSettled(): void
    {
        if ($this->settled) {
            throw new \LogicException('The callbacks of the task have started. Add callbacks before wait()');
        }
    }
}
