<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Words;

/** Options that say when, and in which surroundings, jobs run. */
final class StartWords
{
    private const THREADS = '-j 100% is the number of usable CPUs, which respects affinity and cgroups';

    public const ROWS = [
        [
            'jobs j P max-procs maxprocs', 'N', Meaning::Other, 'Run up to N jobs at once. N is a number, 0 for the'
            . ' maximum, a percentage of the usable CPUs such as 200%, or a file that contains one of these and is read'
            . ' again while jobs run. Also -P [default: 100%]',
            '`+N` and `-N` are refused: give a percentage', 'max-procs P',
            'The default of xargs is 1',
        ],
        [
            'timeout', 'T', Meaning::Same, 'End a job after this time: seconds (90, 1.5), 10m, 2h, or a percentage of'
            . ' the median run time such as 200% [default: no limit]',
        ],
        ['delay', 'T', Meaning::Same, 'Wait at least this time between two starts, including retries [default: 0]'],
        ['load', 'LOAD', Meaning::Refused, 'write the number of jobs into a file, and give it as -j FILE'],
        ['memfree', 'SIZE', Meaning::Refused, 'limit the jobs with -j'],
        ['memsuspend', 'SIZE', Meaning::Refused, 'limit the jobs with -j'],
        ['noswap', '', Meaning::Refused, 'limit the jobs with -j'],
        ['limit', 'COMMAND', Meaning::Refused, 'write the number of jobs into a file, and give it as -j FILE'],
        ['nice', 'N', Meaning::Refused, 'use nice -n N spindle run ...'],
        ['env', 'NAME', Meaning::Refused, 'jobs have the whole environment; functions of bash need bash -c'],
        ['record-env recordenv', '', Meaning::Refused, 'jobs have the whole environment'],
        ['session', '', Meaning::Refused, 'jobs have the whole environment'],
        ['work-dir wd workdir', 'DIR', Meaning::Refused, "use cd DIR && spindle run ..., or 'cd DIR && ... {}'"],
        ['W', 'DIR', Meaning::Refused, 'use cd DIR && spindle run ...'],
        ['tmpdir tempdir', 'DIR', Meaning::Refused, 'set the environment variable TMPDIR'],
        ['term-seq termseq', 'SEQUENCE', Meaning::Refused, 'jobs get TERM, and KILL two seconds later'],
        [
            'open-tty o', '', Meaning::Refused, 'jobs read an empty standard input; a job can use < /dev/tty itself',
            '', 'open-tty o',
        ],
        ['tty T', '', Meaning::Refused, 'jobs read an empty standard input; a job can use < /dev/tty itself'],
        ['interactive p', '', Meaning::Refused, 'check the commands with --dry-run', '', 'interactive p'],
        [
            'process-slot-var processslotvar', 'NAME', Meaning::Refused, "use {%}, as in 'NAME={%} ... {}'", '',
            'process-slot-var',
        ],
        [
            'use-sockets-instead-of-threads usesocketsinsteadofthreads', '', Meaning::Refused, self::THREADS,
        ],
        [
            'use-cores-instead-of-threads usecoresinsteadofthreads use-cpus-instead-of-cores usecpusinsteadofcores', '',
            Meaning::Refused, self::THREADS,
        ],
        ['number-of-cores numberofcores number-of-cpus numberofcpus', '', Meaning::Refused, 'use nproc'],
        ['number-of-sockets numberofsockets number-of-threads numberofthreads', '', Meaning::Refused, 'use nproc'],
    ];

    private function __construct() {}
}
