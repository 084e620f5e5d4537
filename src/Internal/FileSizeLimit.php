<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Spindle\Internal\Launcher\Process\Files;

/**
 * Writes to files, but refuses writes that would exceed the file size limit (ulimit -f). The system would answer such a
 * write with SIGXFSZ, which ends this process. Only an application should handle this signal, and not a library.
 */
final class FileSizeLimit
{
    /** Signal number, because the constant exists only with ext-pcntl. */
    private const SIGXFSZ = 25;

    /** Flag of open(2) in Linux. */
    private const O_APPEND = 0o2000;

    /** The limit, read at the first use; PHP_INT_MAX for no limit or without ext-posix; null before the first use. */
    private static ?int $maxBytes = null;

    /**
     * Writes as {@see Warnings::write()} does, but returns false for bytes that would exceed the limit.
     *
     * @param resource $stream
     */
    public static function write(mixed $stream, string $bytes): int|false
    {
        if (self::maxBytes() !== \PHP_INT_MAX && !self::fits($stream, \strlen($bytes))) {
            // Makes error_get_last() return the message that a write beyond the limit would cause.
            Warnings::suppressed(static fn(): bool => trigger_error('File too large', \E_USER_WARNING));

            return false;
        }

        return Warnings::write($stream, $bytes);
    }

    public static function allows(int $fileBytes): bool
    {
        return $fileBytes <= self::maxBytes();
    }

    /**
     * Makes writes beyond the limit fail instead of ending this process. Only the program `spindle` calls this method,
     * not the library. The limit still ends child programs, because a new program starts without the handler.
     */
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

    /** @param resource $stream */
    private static function fits(mixed $stream, int $bytes): bool
    {
        $meta = stream_get_meta_data($stream);
        $stat = \in_array($meta['stream_type'], ['STDIO', 'TEMP'], true) ? fstat($stream) : false;
        if ($stat === false || FileType::ofMode($stat['mode']) !== FileType::Regular) {
            return true; // other streams have no limit
        }
        $appends = str_starts_with($meta['mode'], 'a');
        $offset = $appends ? $stat['size'] : (int) ftell($stream);
        $isTemporary = $meta['stream_type'] === 'TEMP';
        if ($isTemporary && $stat['ino'] === 0) { // in memory, until PHP moves the bytes to a file
            return self::allows(max($stat['size'], $offset + $bytes))
                || $stat['size'] + $bytes < self::maxBytesInMemory($meta['uri'] ?? '');
        }
        if ($isTemporary || $appends || !isset($meta['uri']) || $meta['wrapper_type'] !== 'PHP') {
            return self::allows($offset + $bytes);
        }

        // PHP did not open this file, so $offset may be wrong: in append mode, or if other processes move the position.
        return self::allows(max($offset, $stat['size']) + $bytes)
            || self::allows((self::inheritedOffset($meta['uri'], $stat) ?? $stat['size']) + $bytes);
    }

    /** Returns the size at which PHP moves the bytes of php://temp from memory to a file. */
    private static function maxBytesInMemory(string $uri): int
    {
        return preg_match('~/maxmemory:(\d+)~i', $uri, $match) === 1 ? (int) $match[1] : 2 << 20;
    }

    /**
     * Returns the offset in the file at which a write to an inherited descriptor begins; null if it is not known.
     *
     * @param string                                       $uri  of the stream, such as php://fd/3
     * @param array{dev: int, ino: int, size: int, ...} $stat of the stream
     */
    private static function inheritedOffset(string $uri, array $stat): ?int
    {
        $descriptor = match (strtolower($uri)) {
            'php://stdout' => 1,
            'php://stderr' => 2,
            default => preg_match('~^php://fd/(\d+)$~i', $uri, $match) === 1 ? (int) $match[1] : 0,
        };
        $file = Warnings::suppressed(static fn(): array|false => stat("/proc/self/fd/{$descriptor}"));
        $info = (string) Files::read("/proc/self/fdinfo/{$descriptor}");
        if (
            $file === false
            || [$file['dev'], $file['ino']] !== [$stat['dev'], $stat['ino']] // the descriptor has another file now
            || preg_match('/^pos:\s+(\d+)\nflags:\s+([0-7]+)$/m', $info, $match) !== 1
        ) {
            return null;
        }

        return (octdec($match[2]) & self::O_APPEND) === 0 ? (int) $match[1] : $stat['size'];
    }
}
