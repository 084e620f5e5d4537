<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\UsageException;

/** Finds where records end. Keeps no text: the caller passes an incomplete record again, together with more input. */
interface RecordEnds
{
    /**
     * Returns the position after $from where the last complete record ends; $from if no record is complete.
     *
     * @param int $limit position at which the search ends
     *
     * @throws UsageException when a regular expression can't be applied
     */
    public function last(string $text, int $from, int $limit): int;

    /**
     * Returns the position where the $count-th record after $from ends; null if that record is not complete.
     *
     * @param int $limit position at which the search ends
     * @param int $count at least 1
     *
     * @throws UsageException when a regular expression can't be applied
     */
    public function next(string $text, int $from, int $limit, int $count): ?int;

    /**
     * Returns a position: the text from $from to this position belongs to the current block, whatever input follows.
     * The text after this position is needed to find the end of the block. Returns $from if no text is certain.
     *
     * @throws UsageException when a regular expression can't be applied
     */
    public function certain(string $text, int $from): int;

    public function withoutSeparators(string $block): string;
}
