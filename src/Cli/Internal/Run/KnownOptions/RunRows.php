<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/** Options for running jobs and their results, and those of `spindle sem`. {@see KnownOption::of()} reads each row. */
final class RunRows
{
    private const THREADS = 'leave it out: -j 100% means all CPUs that the CPU affinity and the cgroup allow';

    private const TERMINAL = 'jobs read an empty standard input and have no /dev/tty; a job can open the file that tty'
        . ' names in your shell, as in \'read x < /dev/pts/0\'';

    private const COLOR = 'lines have no colours; use --tag, which begins each line with the input';
    private const LIVE = 'use --line-buffer --tag, or --progress screen, whose key o shows the output of a job';
    private const LATEST = 'use --line-buffer, or --progress bar';
    private const COMPRESS = 'the temporary files with outputs are not compressed';

    private const FORM = 'The bar differs from the bar of GNU parallel. For standard input, the total is known only'
        . ' when all of the input has been read';

    private const AGENTS = 'start spindle work on the other machines, and use --queue NAME';
    private const FILES = 'jobs on other machines have no copies of files; put the files into a shared folder';
    private const DATABASE = 'jobs and outcomes are not kept in a database; use --joblog FILE and --results DIR';

    public const JOBS = [
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
        ['open-tty o', '', Meaning::Refused, self::TERMINAL, '', 'open-tty o'],
        ['tty T', '', Meaning::Refused, self::TERMINAL],
        ['interactive p', '', Meaning::Refused, 'check the commands with --dry-run', '', 'interactive p'],
        [
            'process-slot-var processslotvar', 'NAME', Meaning::Refused, "use {%}, as in 'NAME={%} ... {}'", '',
            'process-slot-var',
        ],
        ['use-sockets-instead-of-threads usesocketsinsteadofthreads', '', Meaning::Refused, self::THREADS],
        [
            'use-cores-instead-of-threads usecoresinsteadofthreads use-cpus-instead-of-cores usecpusinsteadofcores', '',
            Meaning::Refused, self::THREADS,
        ],
        ['number-of-cores numberofcores number-of-cpus numberofcpus', '', Meaning::Refused, 'use nproc'],
        ['number-of-sockets numberofsockets number-of-threads numberofthreads', '', Meaning::Refused, 'use nproc'],
    ];

    public const OUTPUT = [
        ['keep-order k keeporder', '', Meaning::Same, 'Print outputs in the order of the input'],
        ['no-keep-order nokeeporder nok no-k', '', Meaning::Refused, 'leave out --keep-order'],
        ['group', '', Meaning::Ignored, 'Outputs are grouped by default'],
        ['g', '', Meaning::Refused, 'leave it out: outputs are grouped by default'],
        [
            'tag', '', Meaning::Same, 'Print the input line and a tab before each line of output',
            'If the last line has no line feed, one is added. GNU parallel also prints the tag after each carriage'
            . ' return',
        ],
        [
            'tag-string tagstring', 'STRING', Meaning::Same, 'Print this text and a tab before each line of output. The'
            . ' text can have replacement strings',
            'If the last line has no line feed, one is added. GNU parallel also prints the tag after each carriage'
            . ' return',
        ],
        ['ctag', '', Meaning::Refused, self::COLOR],
        ['ctag-string ctagstring', 'STRING', Meaning::Refused, self::COLOR],
        ['color colour', '', Meaning::Refused, self::COLOR],
        [
            'color-failed colour-failed colorfailed colourfailed color-fail colour-fail colorfail colourfail cf', '',
            Meaning::Refused, self::COLOR,
        ],
        ['ungroup u', '', Meaning::Same, 'Let jobs write directly to the output of spindle run. Outputs of'
            . ' several jobs can mix'],
        [
            'line-buffer line-buffered linebuffer linebuffered lb', '', Meaning::Same,
            'Print each line of output as soon as it is complete',
            'With `--keep-order`, each output is printed when its job is over. If an attempt ends without a line'
            . ' feed, the output of the next attempt (`--retries`) continues the line. GNU parallel may lose a last'
            . ' line without a line feed when the attempt takes little time',
        ],
        ['latest-line latestline ll', '', Meaning::Refused, self::LATEST],
        ['output-as-files outputasfiles files', '', Meaning::Refused, 'use --results DIR'],
        ['compress', '', Meaning::Refused, self::COMPRESS],
        [
            'use-compress-program compress-program usecompressprogram compressprogram', 'PROGRAM', Meaning::Refused,
            self::COMPRESS,
        ],
        [
            'use-decompress-program decompress-program usedecompressprogram decompressprogram', 'PROGRAM',
            Meaning::Refused, self::COMPRESS,
        ],
        [
            'dry-run dryrun dr', '', Meaning::Same, 'Print the commands without running them',
            'No files are written, and `--halt` and `-t` have no effect. GNU parallel writes the files of `--results`'
            . ' instead of printing the commands, and obeys `--halt`',
        ],
        ['print v', '', Meaning::Same, 'Print each command before its output. Also -v', 'Only `spindle run` has the'
            . ' name `--print`. `-vvv` logs each step. With `--results`, only GNU parallel writes the command to the'
            . ' file of the output'],
        [
            'trace t verbose', '', Meaning::Same, 'Print each command on standard error when it starts',
            'Only `spindle run` has the name `--trace`', 'verbose t',
            'The printed command has more quotes than in xargs',
        ],
        ['silent', '', Meaning::Ignored, 'By default, commands are not printed'],
        ['tmux', '', Meaning::Refused, self::LIVE],
        ['tmux-pane tmuxpane', '', Meaning::Refused, self::LIVE],
        [
            'jsonl', '', Meaning::Own, 'Read lines {"id":...,"cmd":...} and print lines {"id":..., "status":...,'
            . ' "stdout":..., "stderr":...}',
        ],
    ];

    public const OUTCOME = [
        [
            'retries', 'N', Meaning::Same, 'Try a failing job up to N times, or until it succeeds if N'
            . ' is 0 [default: 1]',
            'A pause of about 0.1 s precedes the second try, and each further pause is twice as long, up to 60 s',
        ],
        [
            'halt halt-on-error haltonerror', 'WHEN', Meaning::Same, 'Stop early. soon,fail=1 starts no more jobs'
            . ' after one failure; now,fail=1 also ends running jobs. Other conditions: fail=N%, success=N, success=N%,'
            . ' done=N, done=N% [default: never]',
            'A number of 0 or a percentage above 100 is refused, such as `fail=0` and `fail=200%`. If no job has'
            . ' failed, the exit status after `done=2` is 0; in GNU parallel, it is 101. Jobs that `--resume`'
            . ' skips are not counted; GNU parallel counts them for `success` and `done`',
        ],
        ['H', 'N', Meaning::Refused, 'use --halt soon,fail=1 or --halt now,fail=1'],
        [
            'joblog jl', 'FILE', Meaning::Same, "Write a line for each finished job to this file, in GNU parallel's"
            . ' format. +FILE adds the lines to a log',
            'A file that is not a job log is refused. The column Receive does not count the commands that `-v` prints.'
            . ' In GNU parallel, this column counts them, is 0 with `-u`, and counts standard error too with `--lb`',
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
            'The files of a job are written when the job has ended. The folder of a job has two files that GNU'
            . ' parallel does not write: `command` and `exitval`. In *DIR*, Spindle writes the marker file'
            . ' `.spindle-results`. Files that Spindle has not written are not replaced. An empty value has the'
            . ' folder `\0empty`. White space that `--trim` or `--colsep` removes from a value is not in the name of'
            . ' its folder. A name of more than 255 bytes ends with a hash. If a command has several lines with'
            . ' columns, the numbers of its columns do not begin with 1 again. `.csv`, `.tsv` and `.json` are refused.'
            . ' With `--line-buffer`, only GNU parallel prints the names of the files',
        ],
        ['strict', '', Meaning::Own, 'Start no more jobs after an input line that is not a valid command'],
    ];

    public const PROGRESS = [
        [
            'progress', 'MODE', Meaning::Other, 'Show the progress on standard error: bar, screen, plain, json or none'
            . ' [default: none; without MODE: bar]',
            'In GNU parallel, the option has no value. Here, the next word is the value if it is one of the modes',
        ],
        ['bar', '', Meaning::Other, 'Show a progress bar, as --progress bar does', self::FORM],
        ['eta', '', Meaning::Other, 'Show the remaining time, as --progress bar does', self::FORM],
    ];

    public const OTHER = [
        ['queue', 'NAME', Meaning::Own, 'Run the jobs on the machines where spindle work serves this queue'],
        [
            'broker', 'ADDRESS', Meaning::Own, 'Connect to the engine at this address: redis://host:port/database,'
            . ' rediss:// for TLS, or unix:///path. A password is refused. [default: from --broker-file or'
            . ' SPINDLE_BROKER]',
        ],
        [
            'broker-file', 'FILE', Meaning::Own, 'Read the address, with a password, from this file, which only its'
            . ' owner may read',
        ],
        [
            'tls-ca', 'FILE', Meaning::Own, 'With rediss://, trust only the authorities in this PEM file [default:'
            . ' SPINDLE_TLS_CA]',
        ],
        [
            'tls-cert', 'FILE', Meaning::Own, 'With rediss://, send the client certificate in this PEM file [default:'
            . ' SPINDLE_TLS_CERT]',
        ],
        [
            'tls-key', 'FILE', Meaning::Own, "Read the certificate's private key from this PEM file [default:"
            . " SPINDLE_TLS_KEY, else the certificate's file]",
        ],
        ['sshlogin S', 'HOSTS', Meaning::Refused, self::AGENTS],
        ['sshloginfile slf', 'FILE', Meaning::Refused, self::AGENTS],
        ['ssh', 'COMMAND', Meaning::Refused, self::AGENTS],
        ['ssh-delay sshdelay', 'T', Meaning::Refused, self::AGENTS],
        ['controlmaster M', '', Meaning::Refused, self::AGENTS],
        ['onall', '', Meaning::Refused, self::AGENTS],
        ['nonall', '', Meaning::Refused, self::AGENTS],
        ['hgrp hostgrp hostgroup hostgroups', '', Meaning::Refused, 'use one queue for each group of machines'],
        [
            'filter-hosts filterhosts filter-host', '', Meaning::Refused,
            'leave it out: only machines where spindle work runs get jobs',
        ],
        ['transfer', '', Meaning::Refused, self::FILES],
        ['transfer-file transferfile transfer-files transferfiles tf', 'FILE', Meaning::Refused, self::FILES],
        ['return', 'FILE', Meaning::Refused, self::FILES],
        ['trc', 'FILE', Meaning::Refused, self::FILES],
        ['cleanup', '', Meaning::Refused, self::FILES],
        ['basefile bf', 'FILE', Meaning::Refused, self::FILES],
        ['B', 'FILE', Meaning::Refused, self::FILES],
        ['rsync-opts rsyncopts', 'OPTIONS', Meaning::Refused, self::FILES],
        ['template tmpl', 'FILE', Meaning::Refused, "use sed in the command, as in 'sed s/X/{}/ FILE > {}.out'"],
        ['sql', 'URL', Meaning::Refused, self::DATABASE],
        ['sql-master sqlmaster', 'URL', Meaning::Refused, self::DATABASE],
        ['sql-worker sqlworker', 'URL', Meaning::Refused, self::DATABASE],
        ['sql-and-worker sqlandworker', 'URL', Meaning::Refused, self::DATABASE],
        ['profile J', 'NAME', Meaning::Refused, 'define an alias or a shell function'],
        ['plain', '', Meaning::Ignored, 'There are no profiles'],
        ['gnu', '', Meaning::Ignored, 'There is only one mode'],
        ['help h', '', Meaning::Same, 'Show the help', '', 'help'],
        ['version V', '', Meaning::Same, 'Show the version', '', 'version'],
        ['tollef', '', Meaning::Refused, 'give the arguments after :::'],
        ['will-cite willcite nn nonotice no-notice', '', Meaning::Ignored, 'No notice is printed'],
        ['citation bibtex', '', Meaning::Refused, 'no notice is printed'],
        ['bug', '', Meaning::Refused, 'use --version'],
        ['min-version minversion', 'N', Meaning::Refused, 'use --version'],
        ['shell-completion shellcompletion', 'SHELL', Meaning::Refused, 'spindle has no shell completion'],
        ['debug D', 'WHAT', Meaning::Refused, 'use -vvv to log each step'],
        ['ctrl-c ctrlc no-ctrl-c no-ctrlc noctrlc', '', Meaning::Refused, 'after one Ctrl-C, running jobs may finish'],
    ];

    public const SEM = [
        [
            'jobs j P max-procs maxprocs', 'N', Meaning::Same, 'Let up to N commands run at once: a number, 0 for the'
            . ' maximum, a percentage of the usable CPUs such as 200%, +N, -N, or a file that contains one of these'
            . ' [default: 1]',
        ],
        [
            'id semaphore-name semaphorename', 'NAME', Meaning::Same, 'Count only the commands that are started with'
            . ' this name [default: the name of the terminal]',
        ],
        ['bg', '', Meaning::Same, 'Do not wait for the end of the command. This is the default'],
        ['fg', '', Meaning::Same, 'Wait for the end of the command, and exit with its status'],
        ['wait', '', Meaning::Same, 'Start nothing; wait until all commands with the same --id have ended'],
        [
            'st semaphore-timeout semaphoretimeout', 'T', Meaning::Same, 'Wait at most T (seconds, or a time such as'
            . ' 10m), and then start the command anyway. With - before T, start nothing and exit with 1',
        ],
        ['ungroup u', '', Meaning::Same, 'Print output immediately, and not when the command has ended'],
        ['pipe semaphore', '', Meaning::Ignored, 'The command reads standard input anyway'],
        ['help h', '', Meaning::Same, 'Show the help'],
        ['version V', '', Meaning::Same, 'Show the version'],
    ];
}
