<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** Each record is a shell line. Several values are joined with blanks. */
final class LineFormat implements JobFormat
{
    use JoinsValues;

    public function skips(JobValues $values): bool
    {
        return trim(implode(' ', $values->list()), " \t\n") === '';
    }

    public function job(int $sequence, JobValues $values, int $slot): InputJob
    {
        try {
            return new InputJob($sequence, $values, Command::shell(implode(' ', $values->list())), $slot);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }
    }
}
