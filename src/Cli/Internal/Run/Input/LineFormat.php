<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** Each record is a shell line. Several values are joined with blanks. */
final class LineFormat implements JobFormat
{
    use JoinsValues;

    public function skips(array $values): bool
    {
        return trim(implode(' ', $values), " \t\n") === '';
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
