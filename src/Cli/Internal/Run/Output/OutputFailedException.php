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

    /** Uses the last warning of PHP as the reason. */
    public static function temporaryFile(): self
    {
        return self::lastError("a temporary file in '" . sys_get_temp_dir() . "'");
    }

    /** Uses the last warning of PHP as the reason. */
    public static function lastError(string $what): self
    {
        $message = error_get_last()['message'] ?? 'unknown error';

        $pattern = '/^\w+\([^)]*\): (?:Write of \d+ bytes failed with errno=\d+ |Failed to open stream: )?/i';

        return self::write($what, preg_replace($pattern, '', $message) ?? $message);
    }
}
