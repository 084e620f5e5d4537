<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\Internal\Types\Types;

/** Encodes the data of a COPY … FROM STDIN. Strings are sent unchanged. An array becomes one row in text format. */
final class CopyRows
{
    private const STATEMENT_PATTERN = '~^\s*COPY\s+(?<table>(?:"(?:[^"]++|"")*+"|[^\s("]++)++)\s*'
        . '(?<columns>\((?:"(?:[^"]++|"")*+"|[^")]++)*+\))?\s+FROM\s+STD[iI]N\s*(?<options>.*?)[\s;]*$~isD';

    /**
     * Returns a generator that encodes the items one by one. This method itself reads the first item. If that item is
     * an array, the method calls `$describe`.
     *
     * @param iterable<string|array<array-key, mixed>> $data
     * @param \Closure(string): list<int> $describe returns the OIDs of the columns of a query
     *
     * @return \Generator<int, string>
     *
     * @throws \LogicException when the first item is an array, and `$sql` has options or is not COPY … FROM STDIN
     */
    public static function of(
        string $sql,
        #[\SensitiveParameter]
        iterable $data,
        Types $types,
        \Closure $describe,
    ): \Generator {
        $items = (static fn(): \Generator => yield from $data)();
        $oids = \is_array($items->current()) ? $describe(self::columns($sql)) : null;

        return self::encode($items, $types, $oids);
    }

    /** Returns a query for the columns that the COPY statement lists; for all columns if there is no list. */
    private static function columns(string $sql): string
    {
        if (preg_match(self::STATEMENT_PATTERN, $sql, $match) !== 1 || $match['options'] !== '') {
            throw new \LogicException(
                'Arrays as rows need COPY table FROM STDIN or COPY table (columns) FROM STDIN, without options. '
                    . 'For another format, pass strings in that format',
            );
        }

        return 'SELECT '
            . ($match['columns'] === '' ? '*' : substr($match['columns'], 1, -1))
            . " FROM {$match['table']}";
    }

    /**
     * @param \Generator<mixed> $items
     * @param list<int>|null    $oids type OIDs of the columns if the items are arrays; null if the items are strings
     *
     * @return \Generator<int, string>
     */
    private static function encode(#[\SensitiveParameter] \Generator $items, Types $types, ?array $oids): \Generator
    {
        for ($number = 1; $items->valid(); $items->next(), ++$number) {
            $item = $items->current();
            yield match (true) {
                $oids !== null && \is_array($item) => $types->copyRow($oids, $item, $number),
                $oids === null && \is_string($item) => $item,
                default => throw new \LogicException(
                    "The rows of a COPY must be either all strings or all arrays, but row {$number} is of the type "
                        . get_debug_type($item),
                ),
            };
        }
    }
}
