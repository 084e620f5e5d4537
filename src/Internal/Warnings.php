<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Collects warnings, because PHP's stream functions report the reason of a failure only in a warning. Keeps suppressed
 * warnings from the application's error handler.
 */
final class Warnings
{
    /**
     * Calls with PHP's own error handler. Suppress warnings by `@` inside: PHP's handler honours that, but a handler of
     * the application may throw.
     *
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return T
     */
    public static function suppressed(\Closure $call): mixed
    {
        set_error_handler(null);
        try {
            return $call();
        } finally {
            restore_error_handler();
        }
    }

    /**
     * Reads without a warning. One closure fewer than {@see suppressed()}.
     *
     * @param resource    $stream
     * @param positive-int $bytes
     */
    public static function read(mixed $stream, int $bytes): string|false
    {
        set_error_handler(null);
        try {
            return @fread($stream, $bytes);
        } finally {
            restore_error_handler();
        }
    }

    /**
     * Writes without a warning.
     *
     * @param resource $stream
     */
    public static function write(mixed $stream, string $bytes): int|false
    {
        set_error_handler(null);
        try {
            return @fwrite($stream, $bytes);
        } finally {
            restore_error_handler();
        }
    }

    /**
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return array{T, string} return value, and the last warning or ''
     */
    public static function of(\Closure $call): array
    {
        $last = '';
        set_error_handler(static function (int $level, string $message) use (&$last): bool {
            $last = $message;

            return true;
        });
        try {
            return [$call(), $last];
        } finally {
            restore_error_handler();
        }
    }

    /** Returns the reason in a warning of a stream function, such as "connection refused". */
    public static function clause(string $warning): string
    {
        $text = trim(
            (string) preg_replace(
                [
                    '~^[\w\\\\]+\(\): ~',
                    '~^SSL operation failed with code \d+\. OpenSSL Error messages:~',
                    '~\berror:[0-9A-F]+:[^:]*:[^:]*:~',
                    '~\s+~',
                ],
                ['', '', '', ' '],
                $warning,
            ),
        );
        if (preg_match('~ \(([^()]+)\)$~', $text, $part) === 1) {
            $text = $part[1];
        }

        return preg_match('~^[A-Z][a-z]~', $text) === 1 ? lcfirst($text) : $text;
    }
}
