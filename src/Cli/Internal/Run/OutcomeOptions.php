<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\ReplacementStrings;
use Spindle\Cli\Internal\UsageException;

/** The effects of failures, and the places where the outcomes of jobs are kept. */
final class OutcomeOptions
{
    /**
     * @param string|null $jobLog      path; null for no log
     * @param bool        $retryFailed whether jobs that failed according to the job log run again
     * @param string|null $results     path of the folder; null for none
     * @param bool        $strict      whether the run ends at the first record that is not a command
     */
    private function __construct(
        public readonly int $retries,
        public readonly ?HaltRule $halt,
        public readonly ?string $jobLog,
        public readonly bool $resume,
        public readonly bool $retryFailed,
        public readonly ?string $results,
        public readonly bool $strict,
    ) {}

    /** @throws UsageException */
    public static function of(GivenOptions $given): self
    {
        $resume = $given->flag('resume') || $given->flag('resume-failed');
        if ($resume && $given->text('joblog') === null) {
            throw new UsageException('option --resume: the job log to continue is missing; add --joblog FILE');
        }

        return new self(
            retries: $given->number('retries', 'a number of retries') ?? 0,
            halt: HaltRule::parse($given->text('halt')),
            jobLog: self::jobLog($given),
            resume: $resume,
            retryFailed: $given->flag('resume-failed'),
            results: self::results($given),
            strict: $given->flag('strict'),
        );
    }

    /** @throws UsageException when GNU parallel would append to a log of this name */
    private static function jobLog(GivenOptions $given): ?string
    {
        $path = $given->text('joblog');
        if ($path !== null && $path[0] === '+') {
            throw new UsageException(
                "option --joblog: '{$path}' is not allowed, because GNU parallel would append to the log;"
                . " add --resume to continue a log, or give ./{$path} for a file of that name",
            );
        }

        return $path;
    }

    /** @throws UsageException when the name has another meaning in GNU parallel */
    private static function results(GivenOptions $given): ?string
    {
        $path = $given->text('results');
        if ($path !== null && preg_match('/\.(?:csv|tsv|json)$/Di', $path) === 1) {
            throw new UsageException(
                "option --results: '{$path}' is not allowed, because GNU parallel would write a file;"
                . " give a folder such as {$path}/, or use --jsonl to print results as JSON",
            );
        }
        $strings = new ReplacementStrings();
        if ($path !== null && ($strings->isIn($path) || $strings->unsupportedIn($path) !== null)) {
            throw new UsageException(
                "option --results: '{$path}' is not allowed; give a folder without replacement strings. Each job gets a"
                . ' subfolder that is named after its number',
            );
        }

        return $path;
    }
}
