<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\ListenException;
use Spindle\Internal\Warnings;

/** Removes socket files that killed servers left behind, and socket files that this process created. */
final class UnixSocketFile
{
    /** PHP would cut off a longer path. @see https://man7.org/linux/man-pages/man7/unix.7.html */
    private const MAX_PATH_BYTES = 107;

    private const ECONNREFUSED = 111;
    private const EAGAIN = 11;

    /**
     * Device and inode of each created file, and pid of the process that created it, by path. If this process has
     * replaced a file, the path has several entries. The last entry is the current file.
     *
     * @var array<string, list<array{string, int}>>
     */
    private static array $created = [];

    /**
     * Removes the file of a killed server. If no socket can be created at this path, throws an exception with the
     * reason. PHP's own warning would not contain this reason.
     *
     * @throws ListenException
     */
    public static function prepare(string $path, string $address): void
    {
        $bytes = \strlen($path);
        if ($bytes > self::MAX_PATH_BYTES) {
            throw ListenException::because(
                $address,
                'the path of a Unix socket has at most ' . self::MAX_PATH_BYTES . " bytes, and this one has {$bytes}",
            );
        }
        clearstatcache(true, $path);
        $folder = \dirname($path);
        if (!is_dir($folder)) {
            throw ListenException::because($address, "{$folder} is not an existing folder");
        }
        $type = Warnings::suppressed(static fn(): string|false => filetype($path));
        if ($type !== false && $type !== 'socket') {
            throw ListenException::because($address, "{$path} already exists, and is not a socket but a {$type}");
        }
        if (!is_writable($folder)) {
            throw ListenException::because($address, "the folder {$folder} is not writable");
        }
        if ($type === 'socket') {
            self::removeStale($path, $address);
        }
    }

    public static function recordCreated(string $path): void
    {
        $identity = self::identity($path);
        if ($identity !== null) {
            self::$created[$path][] = [$identity, (int) getmypid()];
        }
    }

    /**
     * Removes a file that this process created, unless another file has replaced it. Call this method once per file,
     * before the socket of the file is closed. After the close, the file of another server can get the same inode, and
     * this method would remove that file.
     */
    public static function remove(string $path): void
    {
        $created = isset(self::$created[$path]) ? array_shift(self::$created[$path]) : null;
        if ($created === [self::identity($path), getmypid()]) {
            Warnings::suppressed(static fn(): bool => unlink($path));
        }
        if ((self::$created[$path] ?? []) === []) {
            unset(self::$created[$path]);
        }
    }

    /** Removes the file, or throws if its server runs. A server that is busy or refuses access counts as running. */
    private static function removeStale(string $path, string $address): void
    {
        [[$client, $code, $message]] = Warnings::of(
            static fn() => [stream_socket_client("unix://{$path}", $code, $message, 1), $code, $message],
        );
        if ($client !== false || $code === self::EAGAIN) {
            throw ListenException::because($address, 'address already in use');
        }
        if ($code !== self::ECONNREFUSED && self::identity($path) !== null) {
            throw ListenException::because(
                $address,
                "{$path} already exists, and its server could not be reached: " . lcfirst((string) $message),
            );
        }
        Warnings::suppressed(static fn(): bool => unlink($path));
    }

    private static function identity(string $path): ?string
    {
        clearstatcache(true, $path);
        $status = Warnings::suppressed(static fn(): array|false => lstat($path));

        return $status === false ? null : "{$status['dev']}:{$status['ino']}";
    }
}
