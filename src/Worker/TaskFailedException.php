<?php

declare(strict_types=1);

namespace Spindle\Worker;

/** A task threw, or its result can't be decoded here. getPrevious() is the original exception, if it could be sent. */
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
        $message = self::subject($key)
            . " threw {$thrown->class}: {$thrown->message} in {$thrown->file}:{$thrown->line}"
            . self::afterAttempts($attempts);

        return new self($message, $thrown, $attempts, $key, $original);
    }
}
