<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** The id of a new task is in use: the queue has a different task with this id, or the outcome of such a task. */
final class JobConflictException extends \RuntimeException implements SpindleException
{
    private function __construct(public readonly string $id, string $message)
    {
        parent::__construct($message);
    }

    public static function of(string $queue, string $id): self
    {
        return new self(
            $id,
            "The task was not added: the queue {$queue} has a different task with the id {$id}, or its outcome. "
                . 'Use another id. '
                . 'Two tasks are the same if their code, values, retry policy and timeout are the same.',
        );
    }

    /**
     * @internal
     *
     * @param string $name "closure at", and the file and line of the closure
     */
    public function withClosure(string $name): self
    {
        return new self(
            $this->id,
            "{$this->getMessage()} The task is a {$name}. A closure is a different task when its file has changed, for "
                . 'example by a deployment. To dispatch a task with the same id after a deployment, use a function, a '
                . 'static method or an invokable object.',
        );
    }
}
