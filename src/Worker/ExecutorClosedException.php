<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Internal\OwnLoop;
use Spindle\SpindleException;

/**
 * Thrown after close() or kill(), in a fork of the executor's process, and in an event loop other than the pool's loop.
 * A task also fails with this exception if the caller has left the loop over the results of map(), or the loop over the
 * items of a generator task.
 */
final class ExecutorClosedException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    public static function closed(): self
    {
        return new self(
            'This executor was closed, or PHP has destroyed it at the end of the script. It accepts no more work.'
                . ' Create another one',
        );
    }

    public static function destroyed(): self
    {
        return new self(
            'PHP has destroyed the pool before the task had an outcome, because the script has ended. The task was'
                . ' ended. Await tasks earlier, for example in a shutdown function',
        );
    }

    public static function killed(): self
    {
        return new self('The executor was killed before the task had an outcome. The task was ended');
    }

    public static function abandoned(): self
    {
        return new self(
            'The loop over the results was left or cancelled before the task had ended. The task was ended',
        );
    }

    public static function jobsCancelled(): self
    {
        return new self(
            'The executor was killed before the job had an outcome. The job was cancelled, and is ended'
                . ' if it is running',
        );
    }

    /** Creates the exception for a job that an executor was adding to a queue when the executor was killed. */
    public static function unconfirmed(): self
    {
        return new self(
            'The executor was killed before the engine had confirmed the job. A job of submit() is cancelled. A job'
                . ' of dispatch() is possibly in the queue',
        );
    }

    public static function closedBeforeInputEnd(): self
    {
        return new self(
            'The executor was closed before the end of the input was reached. The results of all'
                . ' values that were read have been yielded',
        );
    }

    public static function inOtherLoop(): self
    {
        return new self(OwnLoop::POOL_REFUSAL);
    }

    public static function forked(): self
    {
        return new self('This pool belongs to the parent process of this fork. Create another pool after the fork');
    }
}
