<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * Parses connection strings in libpq's two forms, a URI and key=value pairs. Exceptions show only keys of the string,
 * because the values may contain a password.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING
 */
final class ConnectionString
{
    private const URI_PATTERN = '~^postgres(?:ql)?://
        (?: (?<user> [^:@/?]*+ ) (?: : (?<password> [^@/?]*+ ) )? @ )?
        (?<hosts> [^/?]*+ )
        (?: / (?<dbname> [^?@]*+ ) )?
        (?: \? (?<query> .*+ ) )? $~sxD';

    private const PAIR_PATTERN = '~\G \s* (?<key> [^\s=]++ ) \s* = \s* (?:'
        . ' \' (?<quoted> (?: [^\'\\\\] | \\\\. )*+ ) \' (?= \s | $ )'
        . ' | (?<plain> (?: [^\s\'\\\\] | \\\\. ) (?: [^\s\\\\] | \\\\. )*+ )?+ (?= \s | $ ) ) \s*~sxD';

    /**
     * @return array<string, string> values by libpq's keywords
     *
     * @throws \ValueError
     */
    public static function parse(#[\SensitiveParameter] string $text): array
    {
        if (str_contains($text, "\0")) {
            throw new \ValueError('The PostgreSQL DSN contains a NUL byte');
        }
        if (preg_match('~^postgres(?:ql)?://~', $text) === 1) {
            return self::uri($text);
        }
        if (preg_match('~^[a-z][a-z0-9+.-]*://~i', $text) === 1) {
            throw new \ValueError('A PostgreSQL URI must begin with postgres:// or postgresql://');
        }
        if (str_starts_with($text, 'pgsql:')) {
            throw new \ValueError(
                "A PostgreSQL DSN has neither the prefix 'pgsql:' of PDO nor semicolons. Write pairs with spaces, such"
                    . " as 'host=localhost dbname=app user=app', or a URI such as 'postgres://app@localhost/app'",
            );
        }

        return self::pairs($text);
    }

    /** @return array<string, string> */
    private static function uri(#[\SensitiveParameter] string $uri): array
    {
        if (preg_match(self::URI_PATTERN, $uri, $part, \PREG_UNMATCHED_AS_NULL) !== 1) {
            throw new \ValueError(
                "The PostgreSQL URI is malformed. In a user name or a password, write '/', '?', '@', ':' and '#' "
                    . 'as %2F, %3F, %40, %3A and %23',
            );
        }
        $values = self::hosts($part['hosts']);
        foreach (['user', 'password', 'dbname'] as $key) {
            $value = self::decode($part[$key] ?? '', $key);
            $values += $value === '' ? [] : [$key => $value];
        }

        return [...$values, ...self::query((string) $part['query'])];
    }

    /** @return array<string, string> values of host and port. Each value is a comma-separated list */
    private static function hosts(#[\SensitiveParameter] string $text): array
    {
        if ($text === '') {
            return [];
        }
        $hosts = $ports = [];
        foreach (explode(',', $text) as $host) {
            if (preg_match(
                '~^(?:\[(?<v6>[0-9a-f:.%]++)]|(?<name>[^:\[\]@]*+))(?::(?<port>[0-9]*+))?$~iD',
                $host,
                $part,
                \PREG_UNMATCHED_AS_NULL,
            ) !== 1) {
                throw new \ValueError(
                    'A host in the PostgreSQL URI is malformed. It must be host, host:port or [IPv6]:port. '
                        . "In a password, write '/', '?', '@', ':' and '#' as %2F, %3F, %40, %3A and %23",
                );
            }
            $hosts[] = self::decode($part['v6'] ?? $part['name'] ?? '', 'host');
            $ports[] = $part['port'] ?? '';
        }

        return array_filter(
            ['host' => implode(',', $hosts), 'port' => implode(',', $ports)],
            static fn(string $list): bool => trim($list, ',') !== '',
        );
    }

    /** @return array<string, string> */
    private static function query(#[\SensitiveParameter] string $query): array
    {
        $values = [];
        foreach ($query === '' ? [] : explode('&', $query) as $pair) {
            $parts = explode('=', $pair);
            if (\count($parts) !== 2 || $parts[0] === '') {
                throw new \ValueError(
                    "The query of the PostgreSQL URI must be key=value pairs with '&' between them. "
                        . "In a value, write '=' and '&' as %3D and %26",
                );
            }
            $key = self::decode($parts[0], 'query');
            $values[$key] = self::decode($parts[1], $key);
        }
        // URIs that were written for JDBC may contain ssl=true.
        if (($values['ssl'] ?? null) === 'true') {
            unset($values['ssl']);
            $values += ['sslmode' => 'require'];
        }

        return $values;
    }

    private static function decode(#[\SensitiveParameter] string $text, string $key): string
    {
        if (preg_match('~%(?![0-9a-f]{2})|%00~i', $text) === 1) {
            throw new \ValueError("In the PostgreSQL URI, '{$key}' has an invalid percent-encoding. Write '%' as %25");
        }

        return rawurldecode($text);
    }

    /** @return array<string, string> */
    private static function pairs(#[\SensitiveParameter] string $text): array
    {
        $values = [];
        for ($at = 0, $size = \strlen(rtrim($text)); $at < $size; $at += \strlen($part[0])) {
            if (preg_match(self::PAIR_PATTERN, $text, $part, \PREG_UNMATCHED_AS_NULL, $at) !== 1) {
                $after = array_key_last($values);
                throw new \ValueError(
                    'The PostgreSQL DSN is neither a URI, such as postgres://app@db.example/shop, nor a list of '
                        . 'key=value pairs' . ($after === null ? '' : ": the text after '{$after}' is malformed"),
                );
            }
            $values[$part['key']] = (string) preg_replace('~\\\\(.)~s', '$1', $part['quoted'] ?? $part['plain'] ?? '');
        }

        return $values;
    }
}
