<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Amp\Cancellation;
use Amp\CancelledException;

/**
 * One of {@see Tasks}: what is to be done when it has ended.
 *
 * @template-covariant T its result
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
    public function __construct(private readonly Tasks $tasks, public readonly mixed $task) {}

    /**
     * Called with the task's result. If there are several, each gets it, in their order.
     *
     * @param callable(T): mixed $callback
     *
     * @return $this
     *
     * @throws \LogicException when the task has ended
     */
    public function then(callable $callback): self
    {
        $this->mustBeOpen();
        $this->then[] = $callback;

        return $this;
    }

    /**
     * Called with the exception for which there is no result, mostly a {@see TaskException}, or with what a then() has
     * thrown. If there are several, each gets it.
     *
     * @param callable(\Throwable): mixed $callback
     *
     * @return $this
     *
     * @throws \LogicException when the task has ended
     */
    public function catch(callable $callback): self
    {
        $this->mustBeOpen();
        $this->catch[] = $callback;

        return $this;
    }

    /**
     * Another task, for a chain that goes on: {@see Tasks::add()}.
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
     * At the end of a chain: {@see Tasks::wait()}.
     *
     * @throws CancelledException
     * @throws \LogicException    when it is under way already
     * @throws \Throwable         the first failure that nothing has caught
     */
    public function wait(?Cancellation $cancellation = null): void
    {
        $this->tasks->wait($cancellation);
    }

    /**
     * @internal
     *
     * @throws \Throwable what nothing has caught
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

    private function mustBeOpen(): void
    {
        if ($this->settled) {
            throw new \LogicException('The task has ended and its callbacks were called: add others before wait()');
        }
    }
}
