<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\JsonLines;
use Spindle\Command\Command;

/** Joins values with blanks to a shell line or, with --jsonl, to a JSON object `{"id":...,"cmd":...}`. */
final class LineFormat implements JobFormat
{
    public function __construct(private readonly bool $isJson) {}

    public function isShellLine(): bool
    {
        return true;
    }

    public function usesSlot(): bool
    {
        return false;
    }

    public function skips(JobValues $values): bool
    {
        return trim(implode(' ', $values->list()), $this->isJson ? " \t\r\n" : " \t\n") === '';
    }

    public function addsRecordsUnchanged(): bool
    {
        return false;
    }

    public function baseSize(int $sequence, int $slot): array
    {
        return [0, 1];
    }

    public function addedSize(array $values, int $count, int $sequence, int $slot): array
    {
        $values = \array_slice($values, $count);

        return [array_sum(array_map(\strlen(...), $values)) + \count($values), 0];
    }

    public function job(int $sequence, JobValues $values, int $slot): InputJob
    {
        $text = implode(' ', $values->list());
        [$id, $line] = $this->isJson ? JsonLines::decodeTask($text) : [0, $text];
        try {
            return new InputJob($sequence, $values, Command::shell($line), $slot, $id);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }
    }
}
