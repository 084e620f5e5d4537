<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** Thrown when a task has returned or yielded more bytes than its agent accepts. The task's result is lost. */
final class ResultTooLargeException extends \RuntimeException implements SpindleException
{
    public static function of(string $id, int $size, int $limit): self
    {
        return new self(
            "The result of the job {$id} has {$size} bytes. The limit of its agent is {$limit} "
                . '(AgentOptions::$maxResult). Let the task store the result, and return its name.',
        );
    }

    /** @internal */
    public static function withMessage(string $message): self
    {
        return new self($message);
    }
}
