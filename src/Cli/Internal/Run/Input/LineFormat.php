<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** Each record is a shell line. */
final class LineFormat implements JobFormat
{
    public function usesSlot(): bool
    {
        return false;
    }

    public function skips(string $record): bool
    {
        return trim($record, " \t\n") === '';
    }

    public function job(int $sequence, string $record, int $slot): InputJob
    {
        try {
            return new InputJob($sequence, $record, $record, Command::shell($record), $slot);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }
    }
}
