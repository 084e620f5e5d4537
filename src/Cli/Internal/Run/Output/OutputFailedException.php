<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\SpindleException;

/** A part of a job's outcome could not be written. The job counts as not done. */
final class OutputFailedException extends \RuntimeException implements SpindleException
{
    public static function write(string $what, string $reason): self
    {
        return new self("can't write {$what}: {$reason}");
    }

    public static function lastError(string $what): self
    {
        $message = error_get_last()['message'] ?? 'unknown error';

        return self::write(
            $what,
            preg_replace(
                '/^\w+\([^)]*\): (?:Write of \d+ bytes failed with errno=\d+ |Failed to open stream: )?/i',
                '',
                $message,
            )
                ?? $message,
        );
    }
}
