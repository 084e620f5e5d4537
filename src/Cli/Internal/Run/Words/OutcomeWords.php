<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Words;

/** Options for failures and for the record of a run: retries, halt, job log, results. */
final class OutcomeWords
{
    public const ROWS = [
        [
            'retries', 'N', Meaning::Other, 'Retry a failed job up to N times [default: 0]',
            'GNU parallel counts the first try as well: its `--retries 3` is `--retries 2` here',
        ],
        [
            'halt halt-on-error haltonerror', 'WHEN', Meaning::Other, 'Stop early. soon,fail=1 starts no more jobs'
            . ' after one failure; now,fail=1 also ends running jobs. Other conditions: fail=N%, success=N, success=N%,'
            . ' done=N [default: never]',
            'A percentage is one of the jobs that are over. GNU parallel takes it of all jobs. The numbers 0, 1 and 2'
            . ' are refused',
        ],
        ['H', 'N', Meaning::Refused, 'use --halt soon,fail=1 or --halt now,fail=1'],
        [
            'joblog jl', 'FILE', Meaning::Same, "Write a line for each finished job to this file, in GNU parallel's"
            . ' format',
            '`+FILE` is refused: use `--resume`',
        ],
        ['resume', '', Meaning::Same, 'Skip the jobs that are in the job log'],
        ['resume-failed resumefailed', '', Meaning::Same, 'Skip the jobs that succeeded according to the job log'],
        ['retry-failed retryfailed', '', Meaning::Refused, 'use --resume-failed with the same input and command'],
        [
            'results result res', 'DIR', Meaning::Other, 'Save outputs and exit codes as files in this folder, which'
            . ' must be new, empty or from an earlier run',
            'The layout is another one; names with replacement strings, and `.csv`, `.tsv` and `.json`, are refused',
        ],
        ['strict', '', Meaning::Own, 'Start no more jobs after an input line that is not a valid command'],
    ];

    private function __construct() {}
}
