<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\SpindleException;

/** A value was not sent to another process, because it cannot be serialized or is too large. */
final class UnserializableException extends \RuntimeException implements SpindleException
{
    private function __construct(
        string $message,
        /** Path to the part that cannot be sent, in PHP syntax: `$argument['user']->connection`. */
        public readonly string $path,
        /** Description of the part that cannot be sent, such as "an open stream". */
        public readonly string $what,
        /** Advice, such as "send its contents as an array"; may be empty. */
        public readonly string $advice,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    public static function at(string $path, string $what, ?\Throwable $previous = null, string $advice = ''): self
    {
        return new self(
            "{$path} is {$what}, which can't be sent to another process" . ($advice === '' ? '' : ": {$advice}"),
            $path,
            $what,
            $advice,
            $previous,
        );
    }
}
