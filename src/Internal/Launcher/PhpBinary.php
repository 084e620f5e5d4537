<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\LoadedFiles;
use Spindle\Internal\Warnings;
use Spindle\LauncherException;

/** Finds PHP's command-line binary for helper processes. Under FPM and similar SAPIs, PHP_BINARY is another program. */
final class PhpBinary
{
    /** Extensions that launchers use if they are available: file names without `.so`. */
    private const EXTENSIONS = ['ffi', 'posix', 'pcntl'];

    /**
     * @param string|null $given   path that the caller has set; null to search for the binary
     * @param string      $options class whose option `php` sets the path; named in the error message
     *
     * @throws LauncherException when no executable file is found
     */
    public static function find(?string $given, string $options = 'CommandPoolOptions'): string
    {
        if ($given !== null && !self::isProgram($given)) {
            $reason = "'{$given}' is not an executable file" . self::openBasedirHint();

            throw LauncherException::noPhp("{$reason}. Set its path", $options);
        }
        if ($given !== null) {
            return $given;
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
        $restriction = self::openBasedirHint();
        $advice = $restriction === '' ? '. Install it there, or add its directory to PATH' : $restriction;

        throw LauncherException::noPhp("none of {$tried} is an executable file{$advice}; or set its path", $options);
    }

    /**
     * Returns arguments that make PHP ignore php.ini, load only the extensions that launchers use, and write messages
     * to standard error, because standard output carries frames. The arguments also remove the memory limit, because a
     * launcher may have to store as many commands as the pool's process.
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
        foreach ([...self::EXTENSIONS, ...(self::isInPhar() ? ['phar'] : [])] as $file) {
            if (Warnings::suppressed(static fn(): bool => is_file("{$directory}/{$file}.so"))) {
                array_push($options, '-d', "extension={$file}");
            }
        }

        return $options;
    }

    /**
     * Returns arguments that make PHP run a file. PHP can't run a file in a phar as its main script, so -r loads it.
     *
     * @return list<string>
     */
    public static function script(string $file): array
    {
        return self::isInPhar() ? ['-r', self::requiring($file)] : [$file];
    }

    /** Returns code that loads a file of Spindle. A phar whose name does not end in .phar must be loaded before. */
    public static function requiring(string $file): string
    {
        $phar = self::isInPhar() ? 'Phar::loadPhar(' . var_export(LoadedFiles::path(__FILE__), true) . '); ' : '';

        return "{$phar}require " . var_export($file, true) . ';';
    }

    private static function isInPhar(): bool
    {
        return str_starts_with(__FILE__, 'phar://');
    }

    private static function openBasedirHint(): string
    {
        $directories = (string) \ini_get('open_basedir');

        return $directories === ''
            ? ''
            : " that open_basedir ({$directories}) lets this process see; add the directory of PHP there";
    }

    private static function isProgram(string $path): bool
    {
        // PHP warns about paths that open_basedir does not allow.
        return $path !== '' && Warnings::suppressed(static fn(): bool => is_file($path) && is_executable($path));
    }
}
