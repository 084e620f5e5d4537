<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Explains why the system can't execute a file, in the same words for both start methods (posix_spawn, proc_open). */
final class UnusableProgram
{
    /** The system reads at most this number of bytes to find the interpreter of a script. */
    private const HEAD_BYTES = 256;

    /**
     * @param string $directory working directory of this process; a relative `$file` starts there
     *
     * @return StartFailure|null null if the file and the interpreter in its `#!` line, if any, are executable
     */
    public static function failure(string $file, string $directory): ?StartFailure
    {
        return self::fileFailure($file, $directory) ?? self::interpreterFailure(self::head($file));
    }

    /** Returns why the file itself is unusable; null if it is an executable file. */
    public static function fileFailure(string $file, string $directory): ?StartFailure
    {
        $path = Programs::localPath($file);
        clearstatcache(true, $path);
        if (is_file($path) && is_executable($path)) {
            return null;
        }

        return match (true) {
            is_dir($path) => new StartFailure(126, 'Permission denied: the path is a directory, not a program'),
            file_exists($path) => new StartFailure(126, 'Permission denied: the file is not executable for this user'),
            is_file(\dirname($path)) => new StartFailure(126, 'Not a directory: ' . \dirname($file)),
            default => new StartFailure(127, 'No such file or directory' . ($file[0] === '/'
                ? ''
                : ". The path is relative to the working directory '{$directory}'")),
        };
    }

    /** Returns the first bytes of a file; null if the file can't be read. An executable file may be unreadable. */
    public static function head(string $file): ?string
    {
        $handle = @fopen(Programs::localPath($file), 'r');
        if ($handle === false) {
            return null;
        }
        $head = (string) fread($handle, self::HEAD_BYTES);
        fclose($handle);

        return $head;
    }

    /** @param string|null $head result of {@see head()} */
    public static function interpreterFailure(?string $head): ?StartFailure
    {
        if (preg_match('~^#![ \t]*([^ \t\n\0]+)~', (string) $head, $match) !== 1) {
            return null;
        }
        $interpreter = Programs::localPath($match[1]);
        $name = addcslashes($match[1], "\0..\37\177");
        clearstatcache(true, $interpreter);

        return match (true) {
            !file_exists($interpreter) => new StartFailure(
                127,
                "No such interpreter: the script's first line names '{$name}'" . (str_ends_with($match[1], "\r")
                    ? '. Change the line ends of the script from CRLF to LF'
                    : ''),
            ),
            !is_file($interpreter), !is_executable($interpreter) => new StartFailure(
                126,
                "Permission denied: the script's interpreter '{$name}' is not executable for this user",
            ),
            default => null,
        };
    }

    /** Returns the failure for a file that this system can't run, such as a program for another processor. */
    public static function unknownFormat(): StartFailure
    {
        return new StartFailure(
            126,
            'Exec format error: the file, or the interpreter of a script, is not a program for this system',
        );
    }
}
