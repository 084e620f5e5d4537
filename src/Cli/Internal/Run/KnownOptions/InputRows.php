<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/** Options that define the jobs: the command and the input. {@see KnownOption::of()} reads each row. */
final class InputRows
{
    private const SEM = 'use spindle sem, which has the options of sem';

    private const PERL = 'Perl code is not run, because spindle run has no Perl; use a shell line, such as'
        . " 'x={}; echo \"\${x%.*}\"', or {.} {/} {//} {/.} {1}";

    private const NUMBER_OF_LINES = 'Without a number, `-l` and `--max-lines` mean `-L 1`. Write a number into the'
        . ' same word as the option, as in `-l2` and `--max-lines=2`; `-l 2` is refused';

    private const SPREAD = 'sort the lines by the column, and use --pipe --group-by';

    public const INPUT = [
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
            "Regular expressions are those of PCRE, and can contain no Perl code. `--colsep ''` is refused; in GNU"
            . ' parallel, it makes each character a column',
        ],
        [
            'header', ':', Meaning::Same, 'The first line of each input has the names of its columns. {NAME} stands for'
            . ' the value in that column. With --pipe, the input of each job begins with this line',
            'Only with `--pipe`, the value can also be a number of lines or a regular expression. With this'
            . ' option, GNU parallel splits lines at tabs by default; here, give `--colsep \'\t\'` too. If'
            . ' `-I` changes {}, GNU parallel no longer replaces {NAME}',
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
            "Give the value as `-E END` or `--eof=END`. Leave out the option instead of giving `-E ''`", 'eof E e',
            "Give the value as `-E END` or `--eof=END`; without it, no line ends the input. `-E ''` is refused",
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
        ['linkinputsource xapplyinputsource', 'N', Meaning::Refused, 'link inputs with :::+, ::::+ or --link'],
        ['bg fg semaphore wait', '', Meaning::Refused, self::SEM],
        ['semaphore-name id semaphorename', 'NAME', Meaning::Refused, self::SEM],
        ['semaphore-timeout st semaphoretimeout', 'SECONDS', Meaning::Refused, self::SEM],
    ];

    public const COMMAND = [
        [
            'replace I i', 'R', Meaning::Same, 'Use R instead of {}', 'Give the value as `-I R` or `--replace=R`',
            'replace I i', 'Give the value as `-I R` or `--replace=R`. Leading blanks of a line are kept',
        ],
        ['er extensionreplace', 'R', Meaning::Same, 'Use R instead of {.}'],
        ['bnr basenamereplace', 'R', Meaning::Same, 'Use R instead of {/}'],
        ['dnr dirnamereplace', 'R', Meaning::Same, 'Use R instead of {//}'],
        ['bner basenameextensionreplace', 'R', Meaning::Same, 'Use R instead of {/.}'],
        ['seqreplace', 'R', Meaning::Same, 'Use R instead of {#}'],
        ['slotreplace', 'R', Meaning::Same, 'Use R instead of {%}'],
        [
            'max-args n maxargs', 'N', Meaning::Same, 'Insert up to N inputs into one command', '',
            'max-args n', 'Each line is an input; in xargs, each word is an input. Use -d or tr(1) to split lines at'
            . ' blanks',
        ],
        [
            'args N max-replace-args maxreplaceargs', 'N', Meaning::Same,
            'Insert N inputs into one command: {1} to {N}. Repeat words with {} as -X does',
            'Only `spindle run` has the name `--args`',
        ],
        [
            'max-lines L l maxlines', 'N', Meaning::Same, 'Insert up to N lines into one command',
            'A line that ends with a blank is continued on the next line. ' . self::NUMBER_OF_LINES, 'max-lines L l',
            'Each line is one argument; xargs splits lines at blanks. A line that ends with a blank is continued. '
            . self::NUMBER_OF_LINES,
        ],
        [
            'pack m', '', Meaning::Same, 'Insert as many inputs as fit into a command. Divide the last inputs among the'
            . ' jobs that run at once', 'Only `spindle run` has the name `--pack`',
        ],
        ['xargs', '', Meaning::Same, 'As -m, but do not divide the last inputs among the jobs that run at once'],
        [
            'each-word X', '', Meaning::Same, 'As -m, but repeat the word that has {}: pre{}post becomes pre1post'
            . ' pre2post', 'Only `spindle run` has the name `--each-word`',
        ],
        [
            'max-chars s maxchars', 'N', Meaning::Same, 'With -m, -X, -n, -N or -L, make no command longer than N bytes'
            . ' [default: 131072 for -m, --xargs and -X, else the limit of the system]',
            'The NUL byte at the end of each argument counts. GNU parallel also counts the quotes that it adds to'
            . ' values; here, a command of several words has no such quotes. The default of GNU parallel is about half'
            . ' as long',
            'max-chars s', 'The default of xargs is always 131072',
        ],
        [
            'exit x', '', Meaning::Refused,
            'leave it out: a run ends anyway when a command with one input is longer than allowed', '', 'exit x',
        ],
        [
            'quote q', '', Meaning::Same, 'No shell reads the command, even if it is one word',
            'Even without this option, no shell reads a command of several words',
        ],
        ['rpl', 'STRING', Meaning::Refused, self::PERL],
        ['parens', 'PARENS', Meaning::Refused, self::PERL],
        ['plus', '', Meaning::Refused, self::PERL],
        ['U', 'R', Meaning::Refused, 'use --er R'],
        ['shell-quote shellquote shell_quote', '', Meaning::Refused, "use bash: printf '%q\\n'"],
        ['max-line-length-allowed maxlinelengthallowed', '', Meaning::Refused, 'use getconf ARG_MAX'],
        ['show-limits showlimits', '', Meaning::Refused, 'use getconf ARG_MAX', '', 'show-limits'],
        ['Y shebang hashbang', '', Meaning::Refused, 'start spindle run in a shell script'],
        ['filter', 'EXPRESSION', Meaning::Refused, self::PERL],
        ['embed', '', Meaning::Refused, 'a script can\'t contain spindle; install spindle on the machine'],
    ];

    public const BLOCKS = [
        [
            'pipe spreadstdin', '', Meaning::Other, 'Split standard input into blocks of whole records, and give each'
            . ' job one block as its standard input',
            'The standard input of a job is a file and not a pipe. A job that ends without reading all of its input has'
            . ' not failed. `--retries` gives the block to a failed job again. A blank line is a record of its own; GNU'
            . ' parallel joins it with the next line. `:::` is refused; GNU parallel gives each job one of the values'
            . ' after `:::`',
        ],
        [
            'pipe-part pipepart', '', Meaning::Same, 'As --pipe, but read parts of the files of -a or ::::, several at'
            . ' once. --block -N makes N parts for each job that runs at once [default: -10]',
            '`--regexp`, `--round-robin`, `--cat` and `--rrs` are refused with `--pipe-part`. The column Send of the'
            . ' job log is the size of the part; in GNU parallel, this column is 0. `--resume` is refused if a part has'
            . ' another size than in the job log',
        ],
        [
            'block block-size blocksize', 'SIZE', Meaning::Same, 'Size of a block in bytes, such as 10M. A block grows'
            . ' if a record is longer [default: 1M]',
            'K, M and G stand for powers of 1024; k, m and g for powers of 1000',
        ],
        [
            'block-timeout blocktimeout bt', 'T', Meaning::Refused,
            'use a smaller --block: a job starts as soon as its block was read',
        ],
        ['recstart', 'TEXT', Meaning::Same, 'A record starts with this text', '\n, \t, \r, \0 and \\\\ are escapes'],
        [
            'recend', 'TEXT', Meaning::Same, 'A record ends with this text; with an empty text, each byte is a record'
            . ' [default: \n, or nothing with --recstart]',
        ],
        [
            'regexp regex', '', Meaning::Same, 'The values of --recstart and --recend are regular expressions',
            'The regular expressions are those of PCRE, without \K. If --recstart and --recend are given with `-N`, and'
            . ' the input does not begin with --recstart, the first block of GNU parallel ends at the first --recstart',
        ],
        ['remove-rec-sep removerecsep rrs', '', Meaning::Same, 'Remove the separators of records from blocks',
            'A job whose block becomes empty has an empty standard input. GNU parallel does not run its command'],
        [
            'round-robin roundrobin round', '', Meaning::Same, 'Start as many jobs as can run at once, and distribute'
            . ' the blocks among them', '`--cat` is refused with `--round-robin`',
        ],
        ['cat', '', Meaning::Same, 'Put each block into a temporary file, whose name is {}'],
        ['fifo', '', Meaning::Other, 'The same as --cat', '{} is a file and not a named pipe'],
        [
            'tee', '', Meaning::Other, 'With --pipe: run a job for each argument after :::, and give all of standard'
            . ' input to each job',
            'Jobs start when all of standard input has been read, and any number of them can run at once.'
            . ' `--pipe-part` is refused with `--tee`',
        ],
        ['bin', 'COLUMN', Meaning::Refused, self::SPREAD],
        ['shard', 'COLUMN', Meaning::Refused, self::SPREAD],
        [
            'group-by groupby', 'COLUMN', Meaning::Other, 'Consecutive lines with the same value in column number'
            . ' COLUMN are one record. --colsep separates columns [default: a tab]',
            'Names of columns, Perl code and `--pipe-part` are refused. A last line without a line feed belongs to'
            . ' the group before it',
        ],
    ];
}
