<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Conversion of a record of the input into a job. */
interface JobFormat
{
    /** Returns whether {@see job()} needs the number of a slot. */
    public function usesSlot(): bool;

    /** Returns whether a record is skipped silently. */
    public function skips(string $record): bool;

    /** @throws BadRecordException */
    public function job(int $sequence, string $record, int $slot): InputJob;
}
