<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Warnings;
use Spindle\Postgres\PostgresHost;

/**
 * Reads libpq's password file. Each line has the form host:port:database:user:password. A field "*" matches any value.
 * A backslash escapes ":" and "\".
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
        preg_match_all('~\G((?:[^:\\\\]|\\\\.)*+)(?::|$)~', $line, $found);
        $fields = array_map(
            static fn(string $field): string => (string) preg_replace('~\\\\(.)~', '$1', $field),
            $found[1],
        );
        foreach ($wanted as $at => $value) {
            if (!isset($fields[$at]) || $found[1][$at] !== '*' && $fields[$at] !== $value) {
                return null;
            }
        }

        return ($fields[4] ?? '') === '' ? null : $fields[4];
    }
}
