<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Internal\Warnings;
use Spindle\Remote\Testing\TemporaryRedisException;

final class ServerBinary
{
    private const NAMES = ['redis-server', 'valkey-server'];

    /** Directories that are searched after those of PATH. */
    private const DIRECTORIES = ['/usr/local/bin', '/usr/bin', '/usr/sbin', '/opt/homebrew/bin'];

    /**
     * @param string|null $given path or name of the program; null to search for {@see NAMES}
     *
     * @throws TemporaryRedisException
     */
    public static function find(?string $given): string
    {
        if ($given !== null && str_contains($given, '/')) {
            return self::isProgram($given) ? $given : throw TemporaryRedisException::notExecutable($given);
        }
        $names = $given !== null ? [$given] : self::NAMES;
        $path = array_filter(explode(':', (string) getenv('PATH')), static fn(string $entry): bool => $entry !== '');
        foreach ($names as $name) {
            foreach ([...$path, ...self::DIRECTORIES] as $directory) {
                if (self::isProgram("{$directory}/{$name}")) {
                    return "{$directory}/{$name}";
                }
            }
        }

        throw TemporaryRedisException::notFound($names, self::DIRECTORIES);
    }

    private static function isProgram(string $path): bool
    {
        return Warnings::suppressed(static fn(): bool => is_file($path) && is_executable($path));
    }
}
