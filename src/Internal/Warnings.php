<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Calls functions that may cause warnings. PHP's stream functions report the reason for a failure only in a warning.
 * The application's error handler gets none of these warnings, unless a method says otherwise.
 */
final class Warnings
{
    /** Matches the start of PHP's warnings: the name of the function, and what failed. The reason follows. */
    private const PREFIX_PATTERN = '/^\w+\([^)]*\): '
        . '(?:Failed to open stream: |(?:Read|Write) of \d+ bytes failed with errno=\d+ )?/i';

    /**
     * Calls a closure, and suppresses its warnings. Sets PHP's own error handler, because a handler of the application
     * may throw in spite of `@`.
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
            return @$call();
        } finally {
            restore_error_handler();
        }
    }

    /**
     * Reads without a warning. Faster than {@see suppressed()}, because it needs no closure.
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
     * Reads from a socket as {@see read()} does.
     *
     * @param resource     $stream
     * @param positive-int $bytes
     *
     * @return array{string|false, ?string} bytes; reason of a failure, or null without a failure or a known reason
     */
    public static function readWithReason(mixed $stream, int $bytes): array
    {
        error_clear_last();
        $read = self::read($stream, $bytes);
        $warning = $read === false || $read === '' ? error_get_last()['message'] ?? '' : '';

        return [$read, $warning === '' ? null : self::socketReason($warning)];
    }

    /**
     * Reads as {@see read()} does, but sets no error handler, because frequent reads must be cheap. So PHP may call the
     * application's handler in spite of `@`. Exceptions of that handler are dropped.
     *
     * @param resource     $stream
     * @param positive-int $bytes
     */
    public static function readFast(mixed $stream, int $bytes): string|false
    {
        try {
            return @fread($stream, $bytes);
        } catch (\Throwable) {
            return false;
        }
    }

    /**
     * Writes as {@see write()} does, but sets no error handler, for the same reason as {@see readFast()}.
     *
     * @param resource $stream
     */
    public static function writeFast(mixed $stream, string $bytes): int|false
    {
        try {
            return @fwrite($stream, $bytes);
        } catch (\Throwable) {
            return false;
        }
    }

    /** @param resource $stream */
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
     * Reads from a stream of the application. A wrapper that is code of the application may suspend this fiber. Then
     * other fibers would run with an error handler that this method has set. So for such a wrapper, this method uses
     * only `@`, which applies to this fiber alone.
     *
     * @param resource     $stream
     * @param positive-int $bytes
     */
    public static function readApplicationStream(mixed $stream, int $bytes): string|false
    {
        return self::hasUserWrapper($stream) ? @fread($stream, $bytes) : self::read($stream, $bytes);
    }

    /**
     * Writes to a stream of the application. Uses only `@` in the same case as {@see readApplicationStream()}.
     *
     * @param resource $stream
     */
    public static function writeApplicationStream(mixed $stream, string $bytes): int|false
    {
        return self::hasUserWrapper($stream) ? @fwrite($stream, $bytes) : FileSizeLimit::write($stream, $bytes);
    }

    /** @param resource $stream */
    private static function hasUserWrapper(mixed $stream): bool
    {
        // @phpstan-ignore nullCoalesce.offset (sockets have no wrapper)
        return (stream_get_meta_data($stream)['wrapper_type'] ?? '') === 'user-space';
    }

    /**
     * Calls a closure, and returns its warnings instead of passing them to an error handler.
     *
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return array{T, string, string} return value, the last warning or '', and the first warning or ''
     */
    public static function of(\Closure $call): array
    {
        $first = $last = '';
        set_error_handler(static function (int $level, string $message) use (&$first, &$last): bool {
            $first = $first === '' ? $message : $first;
            $last = $message;

            return true;
        });
        try {
            return [$call(), $last, $first];
        } finally {
            restore_error_handler();
        }
    }

    /** Returns the reason in a warning of a file function, such as "No such file or directory". */
    public static function reason(string $warning): string
    {
        return (string) preg_replace(self::PREFIX_PATTERN, '', $warning);
    }

    /** Returns the reason in PHP's last warning, which must be of a file function; `$default` without a warning. */
    public static function lastReason(string $default): string
    {
        return self::reason(error_get_last()['message'] ?? $default);
    }

    /** Returns the reason in a socket or TLS function's warning, such as "connection refused", to put after a colon. */
    public static function socketReason(string $warning): string
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
