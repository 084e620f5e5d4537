<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\JsonLines;
use Spindle\Command\Command;

/** Each record is a JSON object `{"id":...,"cmd":...}`. */
final class JsonFormat implements JobFormat
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
        return trim(implode(' ', $values), " \t\r\n") === '';
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
        [$id, $line] = JsonLines::decodeTask(implode(' ', $values));
        try {
            return new InputJob($sequence, $values, Command::shell($line), $slot, $id);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }
    }
}
