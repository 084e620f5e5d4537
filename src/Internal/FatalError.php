<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Finds the fatal error that ended the script, for shutdown functions. */
final class FatalError
{
    public const LEVELS = \E_ERROR | \E_PARSE | \E_CORE_ERROR | \E_COMPILE_ERROR | \E_USER_ERROR | \E_RECOVERABLE_ERROR;

    /** @return array{message: string, file: string, line: int}|null */
    public static function last(): ?array
    {
        $error = error_get_last();

        return $error !== null && ($error['type'] & self::LEVELS) !== 0 ? $error : null;
    }
}
