<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\Replacement;
use Spindle\Cli\Internal\Run\Input\TextTemplate;
use Spindle\Cli\Internal\UsageException;

final class OutcomeOptions
{
    public const UNLIMITED_RETRIES = 1_000_000_000;

    /**
     * @param int         $retries     maximum number of attempts after the first attempt
     * @param bool        $extendsLog  whether --joblog has the form +FILE, which adds lines to an existing log
     * @param bool        $retryFailed whether jobs that failed according to the job log run again
     * @param bool        $strict      whether the run ends at the first record that makes no valid command
     */
    private function __construct(
        public readonly int $retries,
        public readonly ?HaltRule $halt,
        public readonly ?string $jobLog,
        public readonly bool $extendsLog,
        public readonly bool $resume,
        public readonly bool $retryFailed,
        public readonly ?ResultPaths $results,
        public readonly bool $strict,
    ) {}

    /** @throws UsageException */
    public static function of(GivenOptions $given, InputOptions $input): self
    {
        $resume = $given->flag('resume') || $given->flag('resume-failed');
        if ($resume && $given->text('joblog') === null) {
            throw new UsageException('option --resume: the job log to continue is missing; add --joblog FILE');
        }

        $jobLog = $given->text('joblog');
        $extends = $jobLog !== null && $jobLog[0] === '+';
        if ($jobLog === '+') {
            throw UsageException::option('--joblog', $jobLog, 'a file after the +');
        }

        $halt = HaltRule::parse($given->text('halt'));
        if ($halt?->isPercentage === true && $given->flag('pipe') && !$given->flag('tee')) {
            throw new UsageException(
                'option --halt: with --pipe, the number of all jobs is not known; give a number, such as soon,fail=3',
            );
        }

        return new self(
            retries: self::retries($given),
            halt: $halt,
            jobLog: $extends ? substr($jobLog, 1) : $jobLog,
            extendsLog: $extends,
            resume: $resume,
            retryFailed: $given->flag('resume-failed'),
            results: self::results($given, $input),
            strict: $given->flag('strict'),
        );
    }

    /** Returns the number of retries. The value of --retries also counts the first attempt; 0 means no limit. */
    private static function retries(GivenOptions $given): int
    {
        $tries = $given->number('retries', 'a number of tries, or 0 for no limit') ?? 1;

        return $tries === 0 ? self::UNLIMITED_RETRIES : $tries - 1;
    }

    /** @throws UsageException when the path ends in .csv, .tsv or .json, or when jobs of --pipe would share a folder */
    private static function results(GivenOptions $given, InputOptions $input): ?ResultPaths
    {
        $path = $given->text('results');
        if ($path === null) {
            return null;
        }
        if (preg_match('/\.(?:csv|tsv|json)$/Di', $path) === 1) {
            throw new UsageException(
                "option --results: '{$path}' is not allowed, because GNU parallel would write all results to this file;"
                . " give a folder such as {$path}/, or use --jsonl to print results as JSON",
            );
        }

        $template = new TextTemplate('--results', $path, $input->strings);
        if (!$template->uses(Replacement::SEQUENCE) && PipeOptions::areGiven($given)) {
            $folder = rtrim($path, '/');

            throw new UsageException(
                'option --results: blocks have no values; give a name with the number of the job, such as'
                    . " {$folder}/{#}/",
            );
        }

        return new ResultPaths($path, $template, $input->columns, $input->valuesPerRow);
    }
}
