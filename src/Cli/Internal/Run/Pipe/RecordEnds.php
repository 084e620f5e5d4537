<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\UsageException;

/** Finds where records end. Keeps no text: the caller passes an incomplete record again, together with more input. */
interface RecordEnds
{
    /**
     * Returns the last end of a record after $from; $from if there is none.
     *
     * @param int $limit position at which the search ends
     *
     * @throws UsageException when a regular expression can't be applied
     */
    public function last(string $text, int $from, int $limit): int;

    /**
     * Returns the end of the $count-th record after $from; null if the text does not contain that record.
     *
     * @param int $limit position at which the search ends
     * @param int $count at least 1
     *
     * @throws UsageException when a regular expression can't be applied
     */
    public function next(string $text, int $from, int $limit, int $count): ?int;

    public function withoutSeparators(string $block): string;
}
