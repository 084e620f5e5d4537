<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\Internal\FreeMemory;
use Spindle\Internal\Warnings;
use Spindle\SpindleException;

/** The stream of an input or an output failed, or large output does not fit into a temporary file or into memory. */
final class StreamException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    public static function inDirectory(string $directory): self
    {
        return new self("Could not write a temporary file in {$directory}: " . self::reason());
    }

    public static function onStream(): self
    {
        return new self('Could not write output to the stream that was set for it: '
            . self::reason('it accepts no bytes'));
    }

    public static function tooLarge(int $bytes): self
    {
        return new self(
            "The output of {$bytes} bytes does not fit into memory: " . FreeMemory::usage()
                . '. Read it with stdoutStream() or stderrStream(), or raise memory_limit',
        );
    }

    public static function closedStream(): self
    {
        return new self('Could not write output to the stream that was set for it: it is closed');
    }

    public static function fromStream(): self
    {
        return new self('Could not read input from the stream that was set for it: ' . self::reason());
    }

    public static function closedInput(): self
    {
        return new self('Could not read input from the stream that was set for it: it is closed');
    }

    /** Returns and clears PHP's last error, which is the reason why a stream failed. */
    private static function reason(string $default = 'unknown error'): string
    {
        $reason = Warnings::lastReason($default);
        error_clear_last();

        return $reason;
    }
}
