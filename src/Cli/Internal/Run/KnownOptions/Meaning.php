<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/** Treatment of an option of GNU parallel or xargs by `spindle run`. */
enum Meaning: string
{
    case Same = 'same';

    /** Both tools have the option. The note in its row describes the difference. */
    case Other = 'other';

    /** The option is accepted and has no effect, because `spindle run` always does what it asks for. */
    case Ignored = 'the default';

    case Refused = 'refused';

    /** Only `spindle run` has the option. */
    case Own = 'own';
}
