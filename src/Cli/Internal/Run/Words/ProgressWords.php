<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Words;

/** Options that show how far a run is. */
final class ProgressWords
{
    public const ROWS = [
        [
            'progress', 'MODE', Meaning::Other, 'Show the progress on standard error: bar, plain, json or none'
            . ' [default: none]',
            'In GNU parallel, the option has no value',
        ],
        ['bar', '', Meaning::Refused, 'use --progress bar'],
        ['eta', '', Meaning::Refused, 'use --progress plain, which has the remaining time'],
    ];

    private function __construct() {}
}
