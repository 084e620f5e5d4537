<?php

declare(strict_types=1);

namespace Spindle\Worker;

/** A task threw, or its result cannot be decoded. getPrevious() is the original exception, if it can be decoded. */
final class TaskFailedException extends TaskException
{
    private function __construct(
        string $message,
        public readonly Thrown $thrown,
        int $attempts,
        mixed $key,
        ?\Throwable $previous,
    ) {
        parent::__construct($message, $attempts, $key, $previous);
    }

    public static function threw(Thrown $thrown, ?\Throwable $original, int $attempts, mixed $key): self
    {
        [$class] = explode("\0", $thrown->class); // the rest of an anonymous class's name is a generated file name
        $message = self::subject($key)
            . " threw {$class}: {$thrown->message} in {$thrown->file}:{$thrown->line}"
            . self::afterAttempts($attempts)
            . self::advice($thrown);

        return new self($message, $thrown, $attempts, $key, $original);
    }

    /** Returns advice if the task failed because the worker lacks a function or class that this process has. */
    private static function advice(Thrown $thrown): string
    {
        $isMissing = $thrown->class === \Error::class && preg_match(
            '/^(?:Call to undefined function (?<name>\S+)\(\)|Class "(?<class>\S+)" not found)$/D',
            $thrown->message,
            $match,
        ) === 1;
        if (!$isMissing || !(\function_exists($match['name']) || class_exists($match['class'] ?? '', false))) {
            return '';
        }

        return '. A worker does not run the main script, so it lacks what that script declares. Let Composer autoload '
            . $match['name'] . ($match['class'] ?? '') . ', or load it in the file of WorkerPoolOptions(bootstrap:)';
    }
}
