<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\Warnings;

/** User, groups and root directory of this process. A launcher keeps those that it was started with. */
final class ProcessCredentials
{
    private static ?bool $isKnown = null;

    /** Returns a string that changes with the credentials; '' without ext-posix. A call takes about a microsecond. */
    public static function current(): string
    {
        if (!(self::$isKnown ??= self::isKnown())) {
            return '';
        }
        $user = posix_geteuid();
        $groups = posix_getgroups();
        $ids = [posix_getuid(), posix_getegid(), posix_getgid(), ...($groups === false ? [] : $groups)];
        $others = implode(':', $ids);

        return $user === 0 ? "{$user}:{$others}:" . self::root() : "{$user}:{$others}";
    }

    /**
     * Returns the effective user and group as one number; -1 without ext-posix. Five times as fast as {@see current()}.
     * Changes of groups or root directory, which it misses, need the privileges of root.
     */
    public static function effective(): int
    {
        return (self::$isKnown ??= self::isKnown()) ? posix_geteuid() << 32 | posix_getegid() : -1;
    }

    /** @param string $credentials as {@see current()} returns them */
    public static function areOfRoot(string $credentials): bool
    {
        return str_starts_with($credentials, '0:');
    }

    /** Whether the effective user and group are the real ones. If they differ, a shell may reset the effective ones. */
    public static function areReal(): bool
    {
        return (self::$isKnown ??= self::isKnown())
            && posix_geteuid() === posix_getuid()
            && posix_getegid() === posix_getgid();
    }

    private static function isKnown(): bool
    {
        $functions = ['posix_geteuid', 'posix_getuid', 'posix_getegid', 'posix_getgid', 'posix_getgroups'];

        return array_filter($functions, static fn(string $function): bool => !\function_exists($function)) === [];
    }

    /** Only root can change the root directory. */
    private static function root(): int
    {
        if (!\function_exists('chroot')) {
            return 0;
        }
        clearstatcache();

        return (int) Warnings::suppressed(static fn(): int|false => @fileinode('/'));
    }
}
