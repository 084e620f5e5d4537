<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\LauncherException;

/** Finds the command-line PHP for the launcher: under FPM and its kin, PHP_BINARY is another program. */
final class PhpBinary
{
    /** What the launcher uses of extensions, where the distribution has made them loadable. */
    private const EXTENSIONS = ['ffi' => 'FFI', 'posix' => 'posix', 'pcntl' => 'pcntl'];

    /** @throws LauncherException */
    public static function find(?string $given): string
    {
        if ($given !== null) {
            return self::isProgram($given)
                ? $given
                : throw LauncherException::noPhp("'{$given}' is not an executable file" . self::restriction());
        }
        $candidates = \in_array(\PHP_SAPI, ['cli', 'cli-server'], true) ? [\PHP_BINARY] : [];
        $version = \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION;
        foreach ([\PHP_BINDIR, ...explode(':', (string) getenv('PATH'))] as $directory) {
            array_push($candidates, "{$directory}/php{$version}", "{$directory}/php");
        }
        foreach ($candidates as $candidate) {
            if (self::isProgram($candidate)) {
                return $candidate;
            }
        }

        $tried = implode(', ', \array_slice($candidates, 0, 4));

        throw LauncherException::noPhp("none of {$tried} is an executable file" . self::restriction());
    }

    /**
     * Arguments for a PHP that reads no configuration, loads only what the launcher needs, and keeps its standard
     * output, which carries frames, free of messages. The launcher has no memory limit: it holds commands that the
     * pool's process was able to hold.
     *
     * @return list<string>
     */
    public static function options(): array
    {
        $directory = (string) \ini_get('extension_dir');
        $options = [
            '-n', '-d', 'display_errors=stderr', '-d', 'display_startup_errors=0', '-d', 'log_errors=0',
            '-d', 'memory_limit=-1', '-d', 'ffi.enable=1', '-d', "extension_dir={$directory}",
        ];
        foreach (self::EXTENSIONS as $file => $name) {
            if (is_file("{$directory}/{$file}.so")) {
                array_push($options, '-d', "extension={$file}");
            }
        }

        return $options;
    }

    private static function restriction(): string
    {
        $directories = (string) \ini_get('open_basedir');

        return $directories === ''
            ? ''
            : " that open_basedir ({$directories}) lets this process see; add its directory there";
    }

    private static function isProgram(string $path): bool
    {
        // Silently, for open_basedir has PHP warn of each place that it forbids.
        return $path !== '' && @is_file($path) && @is_executable($path);
    }
}
