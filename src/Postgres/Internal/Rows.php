<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Rows of a result, in the form in which the server sent them. Each call decodes them again. */
interface Rows
{
    /**
     * Decodes and returns the first values of the first row, which must exist: one value for each key.
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
     * @param list<K> $keys keys of the values, one for each column
     *
     * @return iterable<list<array<K, mixed>>> batches of rows
     */
    public function batches(Columns $columns, array $keys): iterable;
}
