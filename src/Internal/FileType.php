<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Types of files that Spindle has to read or write in different ways. The values are those of inode(7). */
enum FileType: int
{
    private const MASK = 0o170000;

    case Regular = 0o100000;
    case Pipe = 0o010000;
    case Socket = 0o140000;

    /** @param int $mode element "mode" of the result of stat() */
    public static function ofMode(int $mode): ?self
    {
        return self::tryFrom($mode & self::MASK);
    }

    /** @param resource $stream */
    public static function of(mixed $stream): ?self
    {
        return self::ofMode(fstat($stream)['mode'] ?? 0);
    }

    /** Returns whether a descriptor is opcache's lock file, which gets the number of a closed standard descriptor. */
    public static function isOpcacheLock(int $descriptor): bool
    {
        $path = Warnings::suppressed(static fn(): string|false => readlink("/proc/self/fd/{$descriptor}"));

        return preg_match('~/(?:\.ZendSem\.\w+|memfd:opcache_lock) \(deleted\)$~D', (string) $path) === 1;
    }

    /** @param resource $stream */
    public static function isRegular(mixed $stream): bool
    {
        return self::of($stream) === self::Regular;
    }

    /**
     * Returns true if no read or write waits for another process: for regular files and streams without fstat().
     *
     * @param resource $stream
     */
    public static function isAlwaysReady(mixed $stream): bool
    {
        $stat = Warnings::suppressed(static fn(): array|false => fstat($stream));

        return $stat === false || self::ofMode($stat['mode']) === self::Regular;
    }

    /**
     * Returns php://fd/N for the path of a file descriptor, such as /dev/fd/63 for a shell's <(...). Returns any other
     * path unchanged. A descriptor's path is a symbolic link, and PHP would not find a target such as pipe:[4711].
     */
    public static function streamPath(string $path): string
    {
        $standard = ['/dev/stdin' => '/dev/fd/0', '/dev/stdout' => '/dev/fd/1', '/dev/stderr' => '/dev/fd/2'];
        $path = $standard[$path] ?? $path;

        return preg_replace('~^/(?:dev|proc/self)/fd/(\d+)$~D', 'php://fd/$1', $path) ?? $path;
    }

    /**
     * Returns false for a stream that is always ready, has a filter, or is of a wrapper without stream_cast().
     *
     * @param resource $stream
     */
    public static function canBeWatched(mixed $stream): bool
    {
        if (self::isAlwaysReady($stream)) {
            return false;
        }
        [$none, $streams] = [null, [$stream]];
        try {
            Warnings::suppressed(static fn(): int|false => stream_select($streams, $none, $none, 0));

            return true;
        } catch (\ValueError) {
            return false; // PHP found no descriptor
        }
    }
}
