<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

final class OutputRows
{
    private const COLOR = 'lines have no colours; use --tag, which begins each line with the input';
    private const LATEST = 'use --line-buffer, or --progress bar';
    private const COMPRESS = 'the temporary files with outputs are not compressed';

    public const ROWS = [
        ['keep-order k keeporder', '', Meaning::Same, 'Print outputs in the order of the input'],
        ['no-keep-order nokeeporder nok no-k', '', Meaning::Refused, 'leave out --keep-order'],
        ['group', '', Meaning::Ignored, 'Outputs are grouped by default'],
        ['g', '', Meaning::Refused, 'leave it out: outputs are grouped by default'],
        [
            'tag', '', Meaning::Same, 'Print the input line and a tab before each line of output',
            'If the last line has no line feed, one is added',
        ],
        [
            'tag-string tagstring', 'STRING', Meaning::Same, 'Print this text and a tab before each line of output. The'
            . ' text can have replacement strings',
            'If the last line has no line feed, one is added',
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
        ['dry-run dryrun dr', '', Meaning::Same, 'Print the commands without running them'],
        ['print v', '', Meaning::Same, 'Print each command before its output. Also -v', 'Only `spindle run` has the'
            . ' name `--print`. `-vvv` logs each step'],
        [
            'trace t verbose', '', Meaning::Same, 'Print each command on standard error when it starts',
            'Only `spindle run` has the name `--trace`', 'verbose t',
            'The printed command has more quotes than in xargs',
        ],
        ['silent', '', Meaning::Ignored, 'By default, commands are not printed'],
        ['tmux', '', Meaning::Refused, 'use --results DIR and tail -f'],
        ['tmux-pane tmuxpane', '', Meaning::Refused, 'use --results DIR and tail -f'],
        [
            'jsonl', '', Meaning::Own, 'Read lines {"id":...,"cmd":...} and print lines {"id":..., "status":...,'
            . ' "stdout":..., "stderr":...}',
        ],
    ];
}
