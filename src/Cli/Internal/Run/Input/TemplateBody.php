<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** The parsed words of a template. */
interface TemplateBody
{
    /**
     * @param list<string> $values values of all records of the job
     *
     * @throws \ValueError when the command contains a NUL byte or has no program
     */
    public function command(array $values, int $sequence, string $slot): Command;

    /**
     * Returns the command as GNU parallel prints it.
     *
     * @param list<string> $values values of all records of the job
     */
    public function text(array $values, int $sequence, string $slot): string;

    /** @return list<string> the words of a command without values; for a shell line, one text */
    public function baseWords(): array;

    /**
     * @param list<string> $values values of a record
     *
     * @return array{int, int} bytes and words that a record adds to the command
     */
    public function addedSize(array $values): array;
}
