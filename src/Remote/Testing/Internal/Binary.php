<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Remote\Testing\RedisException;

/** Finds the server's program. */
final class Binary
{
    private const NAMES = ['redis-server', 'valkey-server'];

    /** Searched after PATH. */
    private const DIRECTORIES = ['/usr/local/bin', '/usr/bin', '/usr/sbin', '/opt/homebrew/bin'];

    /** @throws RedisException */
    public static function find(?string $given): string
    {
        if ($given !== null && str_contains($given, '/')) {
            return self::isProgram($given)
                ? $given
                : throw RedisException::notFound([basename($given)], [\dirname($given)]);
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

        throw RedisException::notFound($names, ['PATH', ...self::DIRECTORIES]);
    }

    private static function isProgram(string $path): bool
    {
        return @is_file($path) && @is_executable($path);
    }
}
