<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** How a record of the input becomes a job. */
interface JobFormat
{
    /** Whether {@see job()} wants the number of a slot. */
    public function usesSlot(): bool;

    /** Whether it makes no job of a record, without a word about it. */
    public function skips(string $record): bool;

    /** @throws BadRecordException */
    public function job(int $sequence, string $record, int $slot): Job;
}
