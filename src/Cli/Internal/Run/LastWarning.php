<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/** PHP's last warning about a stream. */
final class LastWarning
{
    private const PREFIX_PATTERN = '/^\w+\([^)]*\): '
        . '(?:Failed to open stream: |(?:Read|Write) of \d+ bytes failed with errno=\d+ )?/i';

    private function __construct() {}

    /** Returns the reason in the last warning; the default without a warning. */
    public static function reason(string $default): string
    {
        return (string) preg_replace(self::PREFIX_PATTERN, '', error_get_last()['message'] ?? $default);
    }
}
