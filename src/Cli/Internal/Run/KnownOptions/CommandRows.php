<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/** Options that change the command: its replacement strings, and the number of inputs that one command gets. */
final class CommandRows
{
    private const PERL = 'Perl code is not run, because spindle run has no Perl; use a shell line, such as'
        . " 'x={}; echo \"\${x%.*}\"', or {.} {/} {//} {/.} {1}";

    private const NUMBER_OF_LINES = 'Without a number, `-l` and `--max-lines` mean `-L 1`. Write a number into the'
        . ' same word as the option, as in `-l2` and `--max-lines=2`; `-l 2` is refused';

    public const ROWS = [
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
            . ' [default: 131072 for -m and -X, else the limit of the system]',
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
        [
            'max-line-length-allowed maxlinelengthallowed', '', Meaning::Refused,
            'use getconf ARG_MAX',
        ],
        ['show-limits showlimits', '', Meaning::Refused, 'use getconf ARG_MAX', '', 'show-limits'],
        ['Y shebang hashbang', '', Meaning::Refused, 'start spindle run in a shell script'],
        ['filter', 'EXPRESSION', Meaning::Refused, self::PERL],
        ['embed', '', Meaning::Refused, 'a script can\'t contain spindle; install spindle on the machine'],
    ];
}
