<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

final class PipeRows
{
    private const SPREAD = 'sort the lines by the column, and use --pipe --group-by';

    public const ROWS = [
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
            'The regular expressions are those of PCRE, without \K',
        ],
        ['remove-rec-sep removerecsep rrs', '', Meaning::Same, 'Remove the separators of records from blocks'],
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
