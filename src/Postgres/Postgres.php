<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Helpers for SQL with dynamic names. Values belong in parameters; names can't be parameters. */
final class Postgres
{
    /** Bytes of a name that the server keeps in its usual build. */
    private const MAX_NAME_BYTES = 63;

    /**
     * Quotes a name: identifier('my "table"') is "my ""table""", identifier('schema', 'table') is "schema"."table".
     *
     * Quoted names are case-sensitive.
     *
     * @throws \ValueError when a name is empty, has a NUL byte, or is so long that the server would truncate it
     */
    public static function identifier(string $name, string ...$names): string
    {
        return implode('.', array_map(static function (string $one): string {
            if ($one === '' || \strlen($one) > self::MAX_NAME_BYTES || str_contains($one, "\0")) {
                throw new \ValueError(\sprintf(
                    'An SQL identifier must have 1 to %d bytes and no NUL byte, not: %s',
                    self::MAX_NAME_BYTES,
                    json_encode($one, \JSON_INVALID_UTF8_SUBSTITUTE),
                ));
            }

            return '"' . str_replace('"', '""', $one) . '"';
        }, [$name, ...array_values($names)]));
    }
}
