<?php

declare(strict_types=1);

namespace Spindle\Internal;

/**
 * Writes to files below the file size limit (ulimit -f). At the limit, the system would end this process by SIGXFSZ.
 * The handling of that signal belongs to the application. So a write that would exceed the limit is not begun.
 */
final class FileSizeLimit
{
    /** Signal number, because the constant exists only with ext-pcntl. */
    private const SIGXFSZ = 25;

    /** The limit at the first write; PHP_INT_MAX if there is none, or without ext-posix; null before. */
    private static ?int $maxBytes = null;

    private function __construct() {}

    /**
     * Writes as {@see Warnings::write()} does.
     *
     * @param resource $stream
     */
    public static function write(mixed $stream, string $bytes): int|false
    {
        if (self::maxBytes() !== \PHP_INT_MAX && !self::allows(self::writeOffset($stream) + \strlen($bytes))) {
            // Sets the message of error_get_last() to that of a write at the limit.
            Warnings::suppressed(static fn(): bool => trigger_error('File too large', \E_USER_WARNING));

            return false;
        }

        return Warnings::write($stream, $bytes);
    }

    public static function allows(int $fileBytes): bool
    {
        return $fileBytes <= self::maxBytes();
    }

    /** Makes writes beyond the limit fail instead of ending this process. Started programs have the default action. */
    public static function handleSignal(): void
    {
        $isLimited = self::maxBytes() !== \PHP_INT_MAX && \function_exists('pcntl_signal');
        if ($isLimited && IgnoredSignals::among([self::SIGXFSZ]) === []) {
            pcntl_signal(self::SIGXFSZ, static fn() => null);
        }
    }

    private static function maxBytes(): int
    {
        if (self::$maxBytes === null) {
            $limit = \function_exists('posix_getrlimit') ? posix_getrlimit()['soft filesize'] ?? null : null;
            self::$maxBytes = \is_int($limit) ? $limit : \PHP_INT_MAX;
        }

        return self::$maxBytes;
    }

    /**
     * Returns where a write to a file begins. Returns a negative number for other streams, which have no limit.
     *
     * @param resource $stream
     */
    private static function writeOffset(mixed $stream): int
    {
        ['stream_type' => $type, 'mode' => $mode] = stream_get_meta_data($stream);

        return match (true) {
            $type !== 'STDIO' || !FileType::isRegular($stream) => \PHP_INT_MIN,
            str_starts_with($mode, 'a') => fstat($stream)['size'] ?? 0,
            default => (int) ftell($stream),
        };
    }
}
