<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Finds and checks the files of programs as execvp() does, and changes to the working directory of a job. */
final class Programs
{
    public const SHELL = '/bin/sh';

    /** Directories that are searched when PATH is not set, as in a shell. */
    public const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

    /** @throws StartFailure when no directory of `$path` has an executable file of this name */
    public static function find(string $program, string $path): string
    {
        $denied = false;
        foreach (explode(':', $path) as $directory) {
            $file = self::localPath($directory === '' ? $program : "{$directory}/{$program}");
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
            : new StartFailure(127, "No such program in PATH ({$path})" . self::advice($program));
    }

    private static function advice(string $program): string
    {
        return preg_match('/\S\s+\S/', $program) === 1
            ? '. This looks like a command line: separate the arguments from the program, or run the line in a shell'
            : '';
    }

    /** Returns the path in a form that PHP does not read as a URL. */
    public static function localPath(string $path): string
    {
        return preg_match('~^\.{0,2}/~', $path) === 1 ? $path : "./{$path}";
    }

    /**
     * Returns whether a file is a script without `#!`. The system can't execute such a script, so a shell must run it.
     *
     * @param string|null $head result of {@see UnusableProgram::head()}
     */
    public static function needsShell(?string $head): bool
    {
        // A binary has NUL bytes near its beginning. Shells check that, too.
        return $head !== null && preg_match('~^#![ \t]*[^ \t\n]~', $head) !== 1 && !str_contains($head, "\0");
    }

    /**
     * @param list<string> $arguments the script, then its arguments
     *
     * @return non-empty-list<string> command line that runs a script without `#!` in a shell
     */
    public static function shellCommand(string $file, array $arguments): array
    {
        return [self::SHELL, self::localPath($file), ...\array_slice($arguments, 1)];
    }

    /**
     * Changes the launcher's working directory before each start, because the path may lead elsewhere than before. Jobs
     * inherit the directory, except with a thread-safe PHP: its chdir() does not change the directory of the process.
     *
     * @param string $directory '' for the working directory of the pool's process, if that directory was removed
     *
     * @throws StartFailure when the directory can't be entered
     */
    public static function changeDirectory(string $directory): void
    {
        if ($directory === '') {
            throw new StartFailure(126, 'The working directory of the calling process no longer exists');
        }
        if (!@chdir($directory) || (\PHP_ZTS !== 0 && !is_executable($directory))) {
            clearstatcache(true, $directory);

            throw new StartFailure(126, "Can't enter the working directory '{$directory}': " . match (true) {
                !file_exists($directory) => 'No such directory',
                !is_dir($directory) => 'Not a directory',
                default => 'Permission denied',
            });
        }
    }
}
