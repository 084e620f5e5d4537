<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

final class StartRows
{
    private const THREADS = 'leave it out: -j 100% means all CPUs that the CPU affinity and the cgroup allow';

    public const ROWS = [
        [
            'jobs j P max-procs maxprocs', 'N', Meaning::Same, 'Run up to N jobs at once. N is a number, 0 for the'
            . ' maximum, a percentage of the usable CPUs such as 200%, +N or -N for more or less than the usable CPUs,'
            . ' or a file that contains one of these and is read again while jobs run. Also -P [default: 100%]',
            'If -N or a percentage results in less than one job, one job runs at a time, as the manual of GNU parallel'
            . ' says. GNU parallel itself refuses such a value',
            'max-procs P',
            'The default of xargs is 1',
        ],
        [
            'timeout', 'T', Meaning::Same, 'End a job after this time: seconds (90, 1.5), 10m, 2h, or a percentage of'
            . ' the median run time such as 200% [default: no limit]',
        ],
        ['delay', 'T', Meaning::Same, 'Wait at least this time between two starts, including retries [default: 0]'],
        [
            'load', 'LOAD', Meaning::Same, 'Start a job only when fewer than LOAD processes run on the machine. LOAD is'
            . ' a number, a percentage of the usable CPUs such as 80%, +N, -N, or a file that contains one of these',
            'Retries are not delayed. Processes of other containers count too',
        ],
        [
            'memfree', 'SIZE', Meaning::Other, 'Start a job only when this number of bytes of memory is available,'
            . ' such as 2G',
            'Running jobs are not ended when memory becomes scarce. Retries are not delayed',
        ],
        ['memsuspend', 'SIZE', Meaning::Refused, 'running jobs are not suspended; use --memfree with twice the size'],
        [
            'noswap', '', Meaning::Same, 'Start no job while the machine swaps memory both in and out',
            'Retries are not delayed',
        ],
        ['limit', 'COMMAND', Meaning::Refused, 'write the number of jobs into a file, and pass the file as -j FILE'],
        ['nice', 'N', Meaning::Same, 'Run the jobs, and spindle run itself, with this niceness: -20 to 19'],
        [
            'env', 'NAME', Meaning::Other, 'Set PARALLEL_SEQ or PARALLEL_JOBSLOT for each job, even if the command does'
            . ' not contain this name. Jobs inherit all other variables of spindle run',
            'A function of bash is refused, because `/bin/sh` does not have the functions of bash: use `bash -c`',
        ],
        ['record-env recordenv', '', Meaning::Refused, 'leave it out: jobs inherit the whole environment'],
        ['session', '', Meaning::Refused, 'leave it out: jobs inherit the whole environment'],
        [
            'work-dir wd workdir', 'DIR', Meaning::Same, 'Run the jobs in this folder, which is created if necessary.'
            . ' Its name can have replacement strings',
            'The temporary folder `...` is refused',
        ],
        ['W', 'DIR', Meaning::Refused, 'use --wd DIR'],
        ['tmpdir tempdir', 'DIR', Meaning::Refused, 'set the environment variable TMPDIR'],
        [
            'term-seq termseq', 'SEQUENCE', Meaning::Other, 'End a job with SIGTERM, and with SIGKILL after a pause in'
            . ' milliseconds [default: TERM,2000,KILL]',
            'Other signals, and several pauses, are refused. The default of GNU parallel is'
            . ' `TERM,200,TERM,100,TERM,50,KILL,25`',
        ],
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
}
