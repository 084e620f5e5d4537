<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Warnings;
use Spindle\Postgres\PostgresHost;

/**
 * Reads libpq's password file. Each line has the form host:port:database:user:password. A field "*" matches any value.
 * A backslash escapes ":" and "\". As in libpq, a field that equals the value also matches without escapes.
 *
 * @see https://www.postgresql.org/docs/current/libpq-pgpass.html
 */
final class PasswordFile
{
    /** Host name by which the file refers to a Unix socket in one of {@see DEFAULT_FOLDERS}. */
    private const DEFAULT_SOCKET_NAME = 'localhost';

    /** Default folders of the server's Unix socket: in packages for Linux, and in PostgreSQL's default build. */
    private const DEFAULT_FOLDERS = ['/var/run/postgresql', '/tmp'];

    /** Returns whether the file exists and no other user has access. Otherwise find() ignores it, as libpq does. */
    public static function isPrivate(string $file): bool
    {
        clearstatcache(false, $file);
        $mode = Warnings::suppressed(static fn(): int|false => is_file($file) ? fileperms($file) : false);

        return $mode !== false && ($mode & 0o077) === 0;
    }

    public static function find(string $file, PostgresHost $host, string $database, string $user): ?string
    {
        $lines = self::isPrivate($file)
            ? Warnings::suppressed(static fn(): array|false => file($file, \FILE_IGNORE_NEW_LINES))
            : false;
        $name = \in_array(rtrim($host->host, '/'), self::DEFAULT_FOLDERS, true)
            ? self::DEFAULT_SOCKET_NAME
            : $host->host;
        foreach ($lines !== false ? $lines : [] as $line) {
            $password = self::match(rtrim($line, "\r"), [$name, (string) $host->port, $database, $user]);
            if ($password !== null) {
                return $password;
            }
        }

        return null;
    }

    /** @param list<string> $wanted host, port, database and user, which the line must match */
    private static function match(#[\SensitiveParameter] string $line, array $wanted): ?string
    {
        if (str_starts_with($line, '#')) {
            return null;
        }
        foreach ($wanted as $value) {
            $bytes = array_map(static fn(string $byte): string => preg_quote($byte, '~'), str_split($value));
            if (preg_match('~^(?:\*|\\\\?+' . implode('\\\\?+', $bytes) . '):~', $line, $field) !== 1) {
                return null;
            }
            $line = substr($line, \strlen($field[0]));
        }
        preg_match('~^(?:[^:\\\\]|\\\\.?)*+~', $line, $field);
        $password = (string) preg_replace('~\\\\(.)~', '$1', $field[0] ?? '');

        return $password === '' ? null : $password;
    }
}
