<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

final class SemRows
{
    public const ROWS = [
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
        ['wait', '', Meaning::Same, 'Start nothing; wait until all commands of the name have ended'],
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
