<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Methods of {@see JobFormat} for formats that join a job's values into one text, which contains the shell line. */
trait JoinsValues
{
    public function isShellLine(): bool
    {
        return true;
    }

    public function usesSlot(): bool
    {
        return false;
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
}
