<?php

declare(strict_types=1);

namespace Spindle\Worker;

/** A task ran longer than {@see WorkerPoolOptions::$timeout}, and was ended. */
final class TaskTimeoutException extends TaskException
{
    /** @param float $timeout in seconds */
    public static function after(float $timeout, int $attempts, mixed $key): self
    {
        return new self(
            self::subject($key)
                . " ran for more than {$timeout} seconds and was ended"
                . parent::afterAttempts($attempts),
            $attempts,
            $key,
        );
    }
}
