<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Quotes names, such as table names, for SQL text. SQL accepts values as parameters, but not names. */
final class Postgres
{
    /** Maximum bytes of a name, unless the server was built with another NAMEDATALEN. */
    private const MAX_NAME_BYTES = 63;

    /**
     * Quotes each name, and joins the names with dots: quoteIdentifier('schema', 'table') returns `"schema"."table"`.
     * Quoted names are case-sensitive. A quotation mark in a name is doubled.
     *
     * @throws \ValueError when a name is empty, has a NUL byte, or has more than the 63 bytes that the server keeps
     */
    public static function quoteIdentifier(string $name, string ...$names): string
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
