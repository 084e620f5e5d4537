<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/** The types of files that a run handles in their own way: inode(7). */
enum FileType: int
{
    private const MASK = 0o170000;

    case Regular = 0o100000;
    case Pipe = 0o010000;

    /** @param int $mode as in the result of stat() */
    public static function ofMode(int $mode): ?self
    {
        return self::tryFrom($mode & self::MASK);
    }

    /** @param resource $stream */
    public static function isRegular(mixed $stream): bool
    {
        return self::ofMode(fstat($stream)['mode'] ?? 0) === self::Regular;
    }
}
