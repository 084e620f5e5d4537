<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Testing\Program;
use Spindle\Internal\Warnings;
use Spindle\Postgres\Testing\TemporaryPostgresException;

/** Finds the directory of the server's programs. Many distributions do not include that directory in PATH. */
final class Binaries
{
    private const DIRECTORY_GLOBS = [
        '/usr/lib/postgresql/*/bin', // Debian
        '/usr/libexec/postgresql*', // Alpine
        '/usr/pgsql-*/bin', // Red Hat, with the packages of postgresql.org
        '/opt/homebrew/opt/postgresql@*/bin',
        '/usr/local/opt/postgresql@*/bin',
        '/usr/local/pgsql/bin',
    ];

    /**
     * Returns the directory that holds initdb and postgres.
     *
     * @param int|null $version required major version; null for any
     * @param string|null $directory the only directory to search; null for PATH and the usual directories
     *
     * @throws TemporaryPostgresException when no directory has a server of this version
     */
    public static function find(?int $version, ?string $directory): string
    {
        $directories = $directory !== null ? [$directory] : self::directories();
        foreach ($directories as $candidate) {
            if (self::hasServer($candidate) && ($version === null || $version === self::version($candidate))) {
                return $candidate;
            }
        }

        throw TemporaryPostgresException::notFound(
            $version,
            $directory !== null ? [$directory] : ['PATH', ...self::DIRECTORY_GLOBS],
        );
    }

    /**
     * Orders directories by the version in their path, the newest first. Paths without a version come last.
     *
     * @param list<string> $directories
     *
     * @return list<string>
     */
    public static function newestFirst(array $directories): array
    {
        usort(
            $directories,
            static fn(string $a, string $b): int => version_compare(self::versionInPath($b), self::versionInPath($a)),
        );

        return $directories;
    }

    private static function versionInPath(string $path): string
    {
        return preg_match('/\d+(?:\.\d+)*/', $path, $match) === 1 ? $match[0] : '';
    }

    /** @return list<string> directories of PATH, then matches of DIRECTORY_GLOBS, the newest version first */
    private static function directories(): array
    {
        $path = array_filter(explode(':', (string) getenv('PATH')), static fn(string $entry): bool => $entry !== '');
        $found = [];
        foreach (self::DIRECTORY_GLOBS as $pattern) {
            $matches = Warnings::suppressed(static fn(): array|false => glob($pattern, \GLOB_ONLYDIR));
            array_push($found, ...$matches !== false ? $matches : []);
        }

        return [...array_values($path), ...self::newestFirst($found)];
    }

    private static function hasServer(string $directory): bool
    {
        return Warnings::suppressed(
            static fn(): bool => is_executable("{$directory}/initdb") && is_executable("{$directory}/postgres"),
        );
    }

    private static function version(string $directory): int
    {
        // Example of the output: postgres (PostgreSQL) 17.2 (Debian 17.2-1)
        [, $output] = Program::run(["{$directory}/postgres", '--version']);

        return preg_match('/\) (\d+)/', $output, $match) === 1 ? (int) $match[1] : 0;
    }
}
