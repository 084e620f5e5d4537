<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\SpindleException;

/** The pool was closed or killed, or a loop was left. The task has no outcome, or was not accepted. */
final class PoolClosedException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    public static function forNew(): self
    {
        return new self('The pool is closed and takes no more tasks: make another one');
    }

    public static function killed(): self
    {
        return new self('The pool was killed before the task had an outcome; it was ended');
    }

    public static function left(): self
    {
        return new self(
            'The loop that the task belongs to was left or cancelled before the task had ended; it was ended',
        );
    }

    public static function unread(): self
    {
        return new self(
            'The pool was closed before all of the input was read; the results of what had been read came before this',
        );
    }

    public static function forked(): self
    {
        return new self(
            'This pool belongs to the process that this one was forked from: make a pool of your own after a fork',
        );
    }
}
