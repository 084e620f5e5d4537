<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\SpindleException;

/** Something was to travel between processes that can't: nothing of it was sent. */
final class UnserializableException extends \RuntimeException implements SpindleException
{
    private function __construct(
        string $message,
        /** Where in the value it is, as PHP would write it: `$argument['user']->connection`. */
        public readonly string $path,
        /** What is there, such as "an open stream". */
        public readonly string $what,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    public static function at(string $path, string $what, ?\Throwable $previous = null, string $advice = ''): self
    {
        return new self("{$path} is {$what}, which can't be sent to another process" . ($advice === '' ? '' : ": {$advice}"), $path, $what, $previous);
    }
}
