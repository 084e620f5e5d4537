<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Words;

/** Options for the output of jobs. */
final class OutputWords
{
    private const COLOR = 'use --tag, which begins each line with the input';
    private const IN_ONE_PIECE = "the output of a job is printed in one piece; to watch it, use 'COMMAND > {#}.log'";
    private const COMPRESS = 'outputs that wait for their turn are in unlinked files, which are not compressed';

    public const ROWS = [
        ['keep-order k keeporder', '', Meaning::Same, 'Print outputs in the order of the input'],
        ['no-keep-order nokeeporder nok no-k', '', Meaning::Refused, 'leave out --keep-order'],
        ['group', '', Meaning::Ignored, 'Outputs are grouped anyway'],
        ['g', '', Meaning::Refused, 'leave it out: outputs are always grouped'],
        ['tag', '', Meaning::Same, 'Print the input line and a tab before each line of output'],
        ['tag-string tagstring', 'STRING', Meaning::Refused, 'use --tag'],
        ['ctag', '', Meaning::Refused, self::COLOR],
        ['ctag-string ctagstring', 'STRING', Meaning::Refused, self::COLOR],
        ['color colour', '', Meaning::Refused, self::COLOR],
        [
            'color-failed colour-failed colorfailed colourfailed color-fail colour-fail colorfail colourfail cf', '',
            Meaning::Refused, self::COLOR,
        ],
        ['ungroup u', '', Meaning::Refused, self::IN_ONE_PIECE],
        ['line-buffer line-buffered linebuffer linebuffered lb', '', Meaning::Refused, self::IN_ONE_PIECE],
        ['latest-line latestline ll', '', Meaning::Refused, self::IN_ONE_PIECE],
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
        [
            'verbose t', '', Meaning::Refused, 'use --dry-run to print the commands without running them, --joblog FILE'
            . ' to list them, or -vvv to log each step',
            '', 'verbose t',
        ],
        ['silent', '', Meaning::Ignored, 'Commands are not printed anyway'],
        ['tmux', '', Meaning::Refused, 'use --results DIR and tail -f'],
        ['tmux-pane tmuxpane', '', Meaning::Refused, 'use --results DIR and tail -f'],
        [
            'jsonl', '', Meaning::Own, 'Read lines {"id":...,"cmd":...} and print lines {"id":..., "status":...,'
            . ' "stdout":..., "stderr":...}',
        ],
    ];

    private function __construct() {}
}
