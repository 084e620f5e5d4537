<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** The types of files that are not all read and written in the same way: inode(7). */
enum FileType: int
{
    private const MASK = 0o170000;

    case Regular = 0o100000;
    case Pipe = 0o010000;
    case Socket = 0o140000;

    /** @param int $mode as in the result of stat() */
    public static function ofMode(int $mode): ?self
    {
        return self::tryFrom($mode & self::MASK);
    }

    /** @param resource $stream */
    public static function of(mixed $stream): ?self
    {
        return self::ofMode(fstat($stream)['mode'] ?? 0);
    }

    /** @param resource $stream */
    public static function isRegular(mixed $stream): bool
    {
        return self::of($stream) === self::Regular;
    }

    /**
     * Returns whether reading and writing never wait for another process: for a regular file, and a stream without
     * fstat().
     *
     * @param resource $stream
     */
    public static function isAlwaysReady(mixed $stream): bool
    {
        $stat = Warnings::suppressed(static fn(): array|false => @fstat($stream));

        return $stat === false || self::ofMode($stat['mode']) === self::Regular;
    }
}
