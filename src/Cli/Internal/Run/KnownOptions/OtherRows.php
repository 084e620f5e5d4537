<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/** Options for other machines, and for GNU parallel itself. */
final class OtherRows
{
    private const AGENTS = 'start spindle work on the other machines, and use --queue NAME';
    private const FILES = 'jobs on other machines have no copies of files; put the files into a shared folder';
    private const DATABASE = 'jobs and outcomes are not kept in a database; use --joblog FILE and --results DIR';

    public const ROWS = [
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
}
