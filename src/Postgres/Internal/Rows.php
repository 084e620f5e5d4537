<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Rows as they came; values are made of them each time that they are asked for. */
interface Rows
{
    /**
     * The first row, which there has to be; of its values the first ones, as many as there are keys.
     *
     * @template K of array-key
     *
     * @param list<K> $keys for its values
     *
     * @return array<K, mixed>
     */
    public function first(Columns $columns, array $keys): array;

    /**
     * @template K of array-key
     *
     * @param list<K> $keys one for each column
     *
     * @return iterable<list<array<K, mixed>>> some rows at a time
     */
    public function batches(Columns $columns, array $keys): iterable;
}
