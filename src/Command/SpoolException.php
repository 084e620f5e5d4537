<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\SpindleException;

/** What does not fit into memory could not be written to where it goes: a temporary file, or a stream that was given. */
final class SpoolException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** The reason is taken from the last error that PHP noted. */
    public static function inDirectory(string $directory): self
    {
        return new self("Can't keep data in a temporary file in {$directory}: " . self::reason());
    }

    /** The reason is taken from the last error that PHP noted. */
    public static function onStream(): self
    {
        return new self("Can't write output to the stream given for it: " . self::reason());
    }

    public static function closedStream(): self
    {
        return new self("Can't write output to the stream given for it: it is closed");
    }

    private static function reason(): string
    {
        $message = error_get_last()['message'] ?? 'unknown error';
        error_clear_last();

        return preg_replace('/^f\w+\([^)]*\): (?:Failed to open stream: |Write of \d+ bytes failed with errno=\d+ )?/', '', $message) ?? $message;
    }
}
