<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\SpindleException;

/** A command has failed. {@see CommandResult::orThrow()} throws this exception. */
final class CommandFailedException extends \RuntimeException implements SpindleException
{
    /** The message contains at most this number of bytes from the end of standard error. */
    private const TAIL_BYTES = 2000;

    private function __construct(public readonly CommandResult $result, string $message)
    {
        parent::__construct($message);
    }

    public static function of(CommandResult $result): self
    {
        $stream = $result->stderrStream();
        $length = fstat($stream)['size'] ?? 0;
        fseek($stream, max(0, $length - self::TAIL_BYTES));
        $tail = trim((string) stream_get_contents($stream));

        return new self($result, $result->describe() . ($tail === '' ? '' : "\n{$tail}"));
    }
}
