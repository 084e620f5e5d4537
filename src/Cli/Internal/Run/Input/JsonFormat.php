<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\JsonLines;
use Spindle\Command\Command;

/** Each record is a JSON object `{"id":...,"cmd":...}`. */
final class JsonFormat implements JobFormat
{
    use JoinsValues;

    public function skips(JobValues $values): bool
    {
        return trim(implode(' ', $values->list()), " \t\r\n") === '';
    }

    public function job(int $sequence, JobValues $values, int $slot): InputJob
    {
        [$id, $line] = JsonLines::decodeTask(implode(' ', $values->list()));
        try {
            return new InputJob($sequence, $values, Command::shell($line), $slot, $id);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }
    }
}
