<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\SpindleException;

/** Output could not be written to the stream that was set for it, or large output to a temporary file. */
final class SpoolException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** Creates an exception whose reason is the last error of PHP. */
    public static function inDirectory(string $directory): self
    {
        return new self("Could not write a temporary file in {$directory}: " . self::reason());
    }

    /** Creates an exception whose reason is the last error of PHP. */
    public static function onStream(): self
    {
        return new self('Could not write output to the stream that was set for it: ' . self::reason());
    }

    public static function closedStream(): self
    {
        return new self('Could not write output to the stream that was set for it: it is closed');
    }

    private static function reason(): string
    {
        $message = error_get_last()['message'] ?? 'unknown error';
        error_clear_last();

        return preg_replace(
            '/^f\w+\([^)]*\): (?:Failed to open stream: |Write of \d+ bytes failed with errno=\d+ )?/',
            '',
            $message,
        )
            ?? $message;
    }
}
