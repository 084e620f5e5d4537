<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

final class InputRows
{
    private const SEM = 'use spindle sem, which has the options of sem';

    public const ROWS = [
        [
            'arg-file a argfile', 'FILE', Meaning::Same,
            'Read the input from this file; - is standard input', 'Several files are combined, as by `::::`',
            'arg-file a', 'Several files are combined, as by `::::` of GNU parallel. xargs reads only the last file',
        ],
        ['null 0', '', Meaning::Same, 'Read input lines that end with NUL. Also -0', '', 'null 0'],
        [
            'delimiter d', 'D', Meaning::Same, 'Read input lines that end with D, such as , or \t',
            'D is one or more characters, \n, \t, \r or \0. GNU parallel also splits the arguments after `:::`; here'
            . ' an argument that contains D is refused',
            'delimiter d', 'Numbers such as \x2c are refused',
        ],
        [
            'colsep C col-sep', 'REGEX', Meaning::Same,
            'Split each line into columns {1} {2}, at the matches of a regular expression',
            'Regular expressions are those of PCRE, and can contain no Perl code',
        ],
        [
            'header', ':', Meaning::Same, 'The first line of each input has the names of its columns. {NAME} stands for'
            . ' the value in that column. With --pipe, the input of each job begins with this line',
            'Only with `--pipe`, the value can also be a number of lines or a regular expression. With this'
            . ' option, GNU parallel splits lines at tabs by default; here, give `--colsep \'\t\'` too',
        ],
        [
            'trim', 'HOW', Meaning::Same, 'Remove white space around values: l (left), r (right), lr or rl (both),'
            . ' n (none) [default: n; with --colsep: rl]',
        ],
        [
            'link xapply', '', Meaning::Same, 'Give each job one line of each input, instead of running all'
            . ' combinations. Shorter inputs start again',
        ],
        [
            'eof E e', 'END', Meaning::Same, 'End the input at the first line that is END',
            'Give the value as `-E END` or `--eof=END`', 'eof E e',
            'Give the value as `-E END` or `--eof=END`; without it, no line ends the input',
        ],
        [
            'no-run-if-empty r norunifempty', '', Meaning::Same, 'Skip empty and blank lines', '',
            'no-run-if-empty r', 'Even without this option, no command runs if there is no input',
        ],
        ['arg-sep argsep', 'WORD', Meaning::Same, 'Use WORD instead of :::'],
        ['arg-file-sep argfilesep', 'WORD', Meaning::Same, 'Use WORD instead of ::::'],
        ['csv', '', Meaning::Refused, 'CSV quotes are not supported; use tabs between columns, and --colsep \'\t\''],
        ['skip-first-line skipfirstline', '', Meaning::Refused, 'use tail -n +2 FILE | spindle run ..., or --header :'],
        [
            'shuf', '', Meaning::Same, 'Read all inputs, and run the jobs in a random order',
            'Refused with `--resume`, and with `--pipe-part`',
        ],
        ['total-jobs totaljobs total', 'N', Meaning::Refused, 'leave it out: the jobs of a file or a list are counted'],
        [
            'linkinputsource xapplyinputsource', 'N', Meaning::Refused,
            'link inputs with :::+, ::::+ or --link',
        ],
        ['bg fg semaphore wait', '', Meaning::Refused, self::SEM],
        ['semaphore-name id semaphorename', 'NAME', Meaning::Refused, self::SEM],
        ['semaphore-timeout st semaphoretimeout', 'SECONDS', Meaning::Refused, self::SEM],
    ];
}
