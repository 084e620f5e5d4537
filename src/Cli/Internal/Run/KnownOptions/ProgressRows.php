<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

final class ProgressRows
{
    private const FORM = 'The bar differs from the bar of GNU parallel. For standard input, the total is known only'
        . ' when all of the input has been read';

    public const ROWS = [
        [
            'progress', 'MODE', Meaning::Other, 'Show the progress on standard error: bar, screen, plain, json or none'
            . ' [default: none; without MODE: bar]',
            'In GNU parallel, the option has no value. Here, the next word is the value if it is one of the modes',
        ],
        ['bar', '', Meaning::Other, 'Show a progress bar, as --progress bar does', self::FORM],
        ['eta', '', Meaning::Other, 'Show the remaining time, as --progress bar does', self::FORM],
    ];
}
