<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Words;

/** Options that distribute standard input among the jobs. */
final class PipeWords
{
    private const SPLIT = "use split(1), which has the same blocks: split -C 1M --filter='COMMAND' FILE";

    public const ROWS = [
        ['pipe spreadstdin', '', Meaning::Refused, self::SPLIT],
        ['pipe-part pipepart', '', Meaning::Refused, self::SPLIT],
        ['block block-size blocksize', 'SIZE', Meaning::Refused, self::SPLIT],
        ['block-timeout blocktimeout bt', 'T', Meaning::Refused, self::SPLIT],
        ['recstart', 'STRING', Meaning::Refused, self::SPLIT],
        ['recend', 'STRING', Meaning::Refused, self::SPLIT],
        ['regexp regex', '', Meaning::Refused, self::SPLIT],
        ['remove-rec-sep removerecsep rrs', '', Meaning::Refused, self::SPLIT],
        ['round-robin roundrobin round', '', Meaning::Refused, self::SPLIT],
        ['cat', '', Meaning::Refused, self::SPLIT],
        ['fifo', '', Meaning::Refused, self::SPLIT],
        ['tee', '', Meaning::Refused, 'give the input as a file to each job'],
        ['bin', 'N', Meaning::Refused, self::SPLIT],
        ['shard', 'N', Meaning::Refused, self::SPLIT],
        ['group-by groupby', 'COLUMN', Meaning::Refused, self::SPLIT],
    ];

    private function __construct() {}
}
