<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Internal\Warnings;
use Spindle\SpindleException;

/** An output, the job log or a temporary file could not be written. With --resume, the affected job runs again. */
final class OutputFailedException extends \RuntimeException implements SpindleException
{
    public static function write(string $what, string $reason): self
    {
        return new self("can't write {$what}: {$reason}");
    }

    public static function temporaryFile(): self
    {
        return self::lastError("a temporary file in '" . sys_get_temp_dir() . "'");
    }

    public static function lastError(string $what): self
    {
        return self::write($what, Warnings::lastReason('unknown error'));
    }
}
