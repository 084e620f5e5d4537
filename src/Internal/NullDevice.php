<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Opens the null device, to reserve a file descriptor or to find out whether one is free. */
final class NullDevice
{
    private const PATH = '/dev/null';

    /** @return resource|null null without a free descriptor, or if PHP may not open the device (open_basedir) */
    public static function open(): mixed
    {
        $stream = Warnings::suppressed(static fn(): mixed => fopen(self::PATH, 're'));

        return $stream === false ? null : $stream;
    }

    /** Returns whether too many files are open. PHP's warning about a failed open does not always say so. */
    public static function lacksDescriptor(): bool
    {
        return self::open() === null && Warnings::suppressed(static fn(): bool => is_readable(self::PATH));
    }
}
