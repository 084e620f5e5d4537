<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Worker\Internal\TaskCode;

/** A task threw, or its result cannot be decoded. getPrevious() is the original exception, if it can be decoded. */
final class TaskFailedException extends TaskException
{
    private function __construct(
        string $message,
        public readonly Thrown $thrown,
        int $attempts,
        mixed $key,
        ?\Throwable $previous,
        /** Whether a task of map() did not run because the worker lacks its code or a class of a captured value. */
        public readonly bool $isTaskMissing = false,
    ) {
        parent::__construct($message, $attempts, $key, $previous);
    }

    public static function threw(
        Thrown $thrown,
        ?\Throwable $original,
        int $attempts,
        mixed $key,
        bool $isTaskMissing = false,
    ): self {
        [$class] = explode("\0", $thrown->class); // an anonymous class has a name with NUL and a generated file name
        $isMissing = TaskCode::isMissing($thrown->class, $thrown->message);
        $how = $isMissing
            ? " did not run: {$thrown->message}"
            : " threw {$class}: {$thrown->message} in {$thrown->file}:{$thrown->line}";
        $message = self::subject($key)
            . $how
            . self::afterAttempts($attempts)
            . self::advice($thrown);

        // A console prints each previous exception, so a previous exception with the same text is left out.
        return new self($message, $thrown, $attempts, $key, $isMissing ? null : $original, $isTaskMissing);
    }

    /** Creates the exception for a result, item or report that this process cannot decode. */
    public static function unreadable(\Throwable $reason, int $attempts, mixed $key): self
    {
        $message = self::subject($key) . " sent a value that cannot be read: {$reason->getMessage()}"
            . self::afterAttempts($attempts);

        return new self($message, Thrown::of($reason), $attempts, $key, $reason);
    }

    /** Returns advice if the task failed because the worker lacks a function, class or constant of this process. */
    private static function advice(Thrown $thrown): string
    {
        $match = [];
        $isMissing = $thrown->class === \Error::class && preg_match(
            '/^(?|Call to undefined (function) (\S+)\(\)|(Class) "(\S+)" not found|Undefined (constant) "([^":]+)")'
                . '( \(on the agent .*\))?$/D',
            $thrown->message,
            $match,
        ) === 1;
        [, $kind, $name, $agent] = ($isMissing ? $match : []) + ['', '', '', ''];
        $isKnown = match ($kind) {
            'function' => \function_exists($name),
            'Class' => class_exists($name, false),
            'constant' => \defined($name),
            default => false,
        };
        if (!$isKnown) {
            return '';
        }

        return '. A worker does not run the main script, so it lacks what that script declares. Let Composer autoload '
            . "{$name}, or load it in the file of WorkerPoolOptions(bootstrap:)"
            . ($agent === '' ? '' : TaskCode::AGENT_ADVICE);
    }
}
