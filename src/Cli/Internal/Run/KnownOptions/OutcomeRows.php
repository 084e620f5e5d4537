<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

final class OutcomeRows
{
    public const ROWS = [
        [
            'retries', 'N', Meaning::Same, 'Try a failing job up to N times, or until it succeeds if N'
            . ' is 0 [default: 1]',
            'A pause of about 0.1 s precedes the second try, and each further pause is twice as long, up to 60 s',
        ],
        [
            'halt halt-on-error haltonerror', 'WHEN', Meaning::Same, 'Stop early. soon,fail=1 starts no more jobs'
            . ' after one failure; now,fail=1 also ends running jobs. Other conditions: fail=N%, success=N, success=N%,'
            . ' done=N, done=N% [default: never]',
            'A number of 0 or a percentage above 100 is refused, such as `fail=0` and `fail=200%`',
        ],
        ['H', 'N', Meaning::Refused, 'use --halt soon,fail=1 or --halt now,fail=1'],
        [
            'joblog jl', 'FILE', Meaning::Same, "Write a line for each finished job to this file, in GNU parallel's"
            . ' format. +FILE adds the lines to a log',
            'A file that is not a job log is refused',
        ],
        [
            'resume', '', Meaning::Other, 'Skip the jobs that are in the job log',
            'It needs --joblog. The input and the command must be those of the job log: a changed command is refused.'
            . ' GNU parallel compares only the numbers of the jobs, and also resumes with --results alone',
        ],
        [
            'resume-failed resumefailed', '', Meaning::Other, 'Skip the jobs that succeeded according to the job log',
            'As with --resume, a command that differs from the one in the job log is refused. GNU parallel runs the new'
            . ' command',
        ],
        ['retry-failed retryfailed', '', Meaning::Refused, 'use --resume-failed with the same input and command'],
        [
            'results result res', 'DIR', Meaning::Same, 'Save outputs in files instead of printing them, in a subfolder'
            . ' of DIR for each job. If DIR has replacement strings, it names the folder or file of each job',
            'The folder of a job has two files that GNU parallel does not write: `command` and `exitval`. In *DIR*,'
            . ' Spindle writes the marker file `.spindle-results`. Files that Spindle has not written are not replaced.'
            . ' An empty value has the folder `\0empty`. A name of more than 255 bytes ends'
            . ' with a hash. `.csv`, `.tsv` and `.json` are refused',
        ],
        ['strict', '', Meaning::Own, 'Start no more jobs after an input line that is not a valid command'],
    ];
}
