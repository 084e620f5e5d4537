<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** Each record is a shell line. Several values are joined with blanks. */
final class LineFormat implements JobFormat
{
    public function isShellLine(): bool
    {
        return true;
    }

    public function usesSlot(): bool
    {
        return false;
    }

    public function skips(array $values): bool
    {
        return trim(implode(' ', $values), " \t\n") === '';
    }

    public function addsRecordsUnchanged(): bool
    {
        return false;
    }

    public function baseSize(): array
    {
        return [0, 1];
    }

    public function addedSize(array $values): array
    {
        return [array_sum(array_map(\strlen(...), $values)) + \count($values), 0];
    }

    public function job(int $sequence, array $values, int $slot): InputJob
    {
        try {
            return new InputJob($sequence, $values, Command::shell(implode(' ', $values)), $slot);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }
    }
}
