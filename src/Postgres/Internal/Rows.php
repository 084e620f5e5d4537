<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Rows as they came; values are made of them each time that they are asked for. */
interface Rows
{
    /**
     * Of the first row, which there has to be.
     *
     * @param int $count so many of its values, from the first
     *
     * @return list<mixed>
     */
    public function first(Columns $columns, int $count): array;

    /** @return iterable<list<list<mixed>>> some at a time, values in the order of the columns */
    public function batches(Columns $columns): iterable;
}
