<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

/** What this process may do: its user, groups and root directory, which a launcher has from its start and cannot follow. */
final class Credentials
{
    private static ?bool $isKnown = null;

    /**
     * Returns a string that differs when they do; '' without the functions of ext-posix. It takes about a microsecond, so that it can be
     * asked for with each command.
     */
    public static function current(): string
    {
        if (!(self::$isKnown ??= self::isKnown())) {
            return '';
        }
        $user = posix_geteuid();
        $groups = posix_getgroups();
        $others = posix_getuid() . ':' . posix_getegid() . ':' . posix_getgid() . ':' . implode(',', $groups === false ? [] : $groups);

        return $user === 0 ? "{$user}:{$others}:" . self::root() : "{$user}:{$others}";
    }

    /** Whether the effective user and group are known to be the real ones; a shell makes them so otherwise. */
    public static function areReal(): bool
    {
        return (self::$isKnown ??= self::isKnown()) && posix_geteuid() === posix_getuid() && posix_getegid() === posix_getgid();
    }

    private static function isKnown(): bool
    {
        $functions = ['posix_geteuid', 'posix_getuid', 'posix_getegid', 'posix_getgid', 'posix_getgroups'];

        return array_filter($functions, static fn(string $function): bool => !\function_exists($function)) === [];
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
