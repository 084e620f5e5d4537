<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** The part of a template that makes the command: a program with its arguments, or a shell line. */
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

    /** @return list<string> the words of a command without values; a shell line is one word */
    public function baseWords(int $sequence, string $slot): array;

    /**
     * @param list<string> $values values of the job's records; the first $count of them were counted in earlier calls
     *
     * @return array{int, int} bytes and words that the values after the first $count add to the command
     */
    public function addedSize(array $values, int $count, int $sequence, string $slot): array;
}
