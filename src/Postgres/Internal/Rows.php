<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Rows as they were received. They are decoded each time that they are read. */
interface Rows
{
    /**
     * Returns the first row, which must exist. Decodes as many of its values as there are keys.
     *
     * @template K of array-key
     *
     * @param list<K> $keys keys of the values
     *
     * @return array<K, mixed>
     */
    public function first(Columns $columns, array $keys): array;

    /**
     * @template K of array-key
     *
     * @param list<K> $keys one for each column
     *
     * @return iterable<list<array<K, mixed>>> batches of rows
     */
    public function batches(Columns $columns, array $keys): iterable;
}
