<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

/** What this process may do: its user, groups and root directory, which a launcher has from its start and cannot follow. */
final class Credentials
{
    /**
     * Returns a string that differs when they do; '' without ext-posix. It takes about a microsecond, so that it can be
     * asked for with each command.
     */
    public static function current(): string
    {
        if (!\function_exists('posix_getgroups')) {
            return '';
        }
        $user = posix_geteuid();
        $groups = posix_getgroups();
        $others = posix_getuid() . ':' . posix_getegid() . ':' . posix_getgid() . ':' . implode(',', $groups === false ? [] : $groups);

        return $user === 0 ? "{$user}:{$others}:" . self::root() : "{$user}:{$others}";
    }

    /** Only root can change it. */
    private static function root(): int
    {
        if (!\function_exists('chroot')) {
            return 0;
        }
        clearstatcache();

        return (int) @fileinode('/');
    }
}
