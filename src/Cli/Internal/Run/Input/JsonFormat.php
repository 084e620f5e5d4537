<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\JsonLines;
use Spindle\Command\Command;

/** Each record is a JSON object `{"id":...,"cmd":...}`. */
final class JsonFormat implements JobFormat
{
    public function usesSlot(): bool
    {
        return false;
    }

    public function skips(string $record): bool
    {
        return trim($record, " \t\r\n") === '';
    }

    public function job(int $sequence, string $record, int $slot): InputJob
    {
        [$id, $line] = JsonLines::decodeTask($record);
        try {
            return new InputJob($sequence, $record, $line, Command::shell($line), $slot, $id);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }
    }
}
