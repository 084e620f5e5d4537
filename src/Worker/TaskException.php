<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\SpindleException;
use Spindle\Worker\Internal\ValueSerializer;

/** A task failed. */
abstract class TaskException extends \RuntimeException implements SpindleException
{
    /** @param mixed $key key of the task's value in the input of map(); null for a submitted task */
    protected function __construct(
        string $message,
        public readonly int $attempts,
        public readonly mixed $key,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    /** Returns the beginning of a message: the task, and its key if there is one. */
    protected static function subject(mixed $key): string
    {
        return match (true) {
            $key === null => 'The task',
            \is_scalar($key) => 'The task for ' . ValueSerializer::keyText($key),
            default => 'The task for a key of type ' . get_debug_type($key),
        };
    }

    /** @param string $reason why there was no further attempt; may be empty */
    protected static function afterAttempts(int $attempts, string $reason = ''): string
    {
        return $attempts > 1 ? " (attempt {$attempts}" . ($reason === '' ? '' : "; {$reason}") . ')' : '';
    }
}
