<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Makes the command of a job from the values of its records. */
interface JobFormat
{
    public function isShellLine(): bool;

    public function usesSlot(): bool;

    /** Returns whether the values make no job, such as a blank line that should contain a command. */
    public function skips(JobValues $values): bool;

    /** Returns whether each record is added to a command as one word, without any change. */
    public function addsRecordsUnchanged(): bool;

    /**
     * Returns the size of a command without values.
     *
     * @return array{int, int} bytes, including the NUL byte at the end of each word, and number of words
     */
    public function baseSize(int $sequence, int $slot): array;

    /**
     * @param list<string> $values values of the job's records; the first $count of them were counted in earlier calls
     *
     * @return array{int, int} bytes and words that the values after the first $count add to a command
     */
    public function addedSize(array $values, int $count, int $sequence, int $slot): array;

    /** @throws BadRecordException */
    public function job(int $sequence, JobValues $values, int $slot): InputJob;
}
