<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Finds the working directory of this process, and makes relative paths absolute. */
final class WorkingDirectory
{
    /**
     * Returns the value of PWD, which may contain symbolic links. If PWD does not lead to the working directory,
     * returns the result of getcwd(), which has no symbolic links; '' if the working directory was removed.
     */
    public static function named(): string
    {
        $pwd = (string) getenv('PWD');

        return self::isNamedBy($pwd, '.') ? $pwd : (string) getcwd();
    }

    /**
     * Returns the absolute path. A relative path is appended to {@see named()}. Returns '' unchanged. If the working
     * directory was removed, a relative path leads to no file, so this method returns the path unchanged.
     *
     * @return ($path is null ? null : string)
     */
    public static function absolute(?string $path): ?string
    {
        if ($path === null || $path === '' || self::isAbsolute($path)) {
            return $path;
        }
        $directory = self::named();

        return $directory === '' ? $path : "{$directory}/{$path}";
    }

    /** Returns whether the path is absolute, or the URL of a stream wrapper. */
    public static function isAbsolute(string $path): bool
    {
        return preg_match('~^(?:/|[a-z][a-z0-9+.-]+://|(?-i:data:))~i', $path) === 1;
    }

    /** Returns whether $pwd is an absolute path that leads to the directory, perhaps through symbolic links. */
    public static function isNamedBy(string $pwd, string $directory): bool
    {
        if (!str_starts_with($pwd, '/')) {
            return false;
        }
        [$named, $actual] = Warnings::suppressed(static fn(): array => [stat($pwd), stat($directory)]);

        return $named !== false
            && $actual !== false
            && [$named['dev'], $named['ino']] === [$actual['dev'], $actual['ino']];
    }
}
