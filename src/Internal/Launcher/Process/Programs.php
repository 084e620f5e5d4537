<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** The program's file, found as execvp does, and the working directory of a command. */
final class Programs
{
    public const SHELL = '/bin/sh';

    /** Directories that the shell searches when PATH is not set. */
    public const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

    /** @throws StartFailure */
    public static function find(string $program, string $path): string
    {
        $denied = false;
        foreach (explode(':', $path) as $directory) {
            $file = self::path($directory === '' ? $program : "{$directory}/{$program}");
            clearstatcache(true, $file);
            if (is_file($file)) {
                if (is_executable($file)) {
                    return $file;
                }
                $denied = true;
            }
        }

        throw $denied
            ? new StartFailure(126, "Permission denied: no executable file '{$program}' in PATH ({$path})")
            : new StartFailure(127, "No such program in PATH ({$path})");
    }

    /** Returns a path that PHP does not take for a URL. */
    public static function path(string $path): string
    {
        return preg_match('~^\.{0,2}/~', $path) === 1 ? $path : "./{$path}";
    }

    /**
     * Whether the file is a script without `#!`, which exec refuses and execvp runs with the shell.
     *
     * @throws StartFailure when nothing can run it
     */
    public static function needsShell(string $file): bool
    {
        $handle = @fopen($file, 'r');
        if ($handle === false) {
            return false; // may be executable without being readable
        }
        $start = (string) fread($handle, 256);
        fclose($handle);
        if (preg_match('~^#![ \t]*([^ \t\n]+)~', $start, $match) === 1) {
            $interpreter = self::path($match[1]);
            clearstatcache(true, $interpreter);
            if (!file_exists($interpreter)) {
                throw new StartFailure(127, "No such interpreter: {$match[1]}");
            }

            return false;
        }

        return !str_contains($start, "\0"); // a binary has one near its beginning; shells check the same
    }

    /**
     * Returns the command line with which the shell runs a script without `#!`, with the same arguments.
     *
     * @param list<string> $arguments arguments of the script, its name first
     *
     * @return non-empty-list<string>
     */
    public static function shellCommand(string $file, array $arguments): array
    {
        return [self::SHELL, self::path($file), ...\array_slice($arguments, 1)];
    }

    /**
     * Changes to the directory, which the next process inherits. The child could not report a bad one. Every start
     * repeats this, because the path may lead to another directory by now.
     *
     * @throws StartFailure
     */
    public static function changeDirectory(string $directory): void
    {
        if (!@chdir($directory)) {
            clearstatcache(true, $directory);

            throw new StartFailure(126, "Can't enter the working directory '{$directory}': " . match (true) {
                !file_exists($directory) => 'No such directory',
                !is_dir($directory) => 'Not a directory',
                default => 'Permission denied',
            });
        }
    }
}
