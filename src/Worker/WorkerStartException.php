<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\SpindleException;

/**
 * No worker could start, or the user, groups or root directory of this process have changed since the submission of a
 * task. The pool stays usable.
 */
final class WorkerStartException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message, public readonly ?Thrown $thrown = null, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    /** @param string $step step of the start that threw, such as "the file /app/bootstrap.php" */
    public static function threw(string $step, Thrown $thrown): self
    {
        return new self(
            "A worker could not be made ready: {$step} threw {$thrown->class}: {$thrown->message}"
                . " in {$thrown->file}:{$thrown->line}",
            $thrown,
        );
    }

    /** @param string $how how the worker ended, such as "exit code 3" */
    public static function ended(string $how, string $stderr, string $advice): self
    {
        $tail = trim($stderr);

        return new self(
            "A worker ended before it began a task ({$how})" . ($advice === '' ? '' : ". {$advice}")
                . ($tail === '' ? '' : "; its standard error ended with: {$tail}"),
        );
    }

    public static function late(float $seconds, string $advice): self
    {
        return new self(
            "A worker was not ready within {$seconds} seconds. "
                . ($advice === '' ? 'Increase startTimeout' : "{$advice}, or increase startTimeout"),
        );
    }

    public static function otherCredentials(): self
    {
        return new self(
            'The user, groups or root directory of this process have changed since the task was submitted, and'
                . ' the task would run with the new ones. Submit the task again',
        );
    }

    public static function impossible(string $why, ?\Throwable $previous = null): self
    {
        return new self("No worker can be started: {$why}", null, $previous);
    }
}
